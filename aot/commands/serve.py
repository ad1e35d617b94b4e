"""`aot serve`: compiled models behind the Open Inference Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aot.commands.line import arguments as arg
from aot.options.declaration import Group


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="m.so | NAME=m.so | FOLDER...", help="Compiled models, or folders of them")
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: all")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of HTTP; 0: a free one")] = 8000,
    grpc_port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of gRPC; default: no gRPC")] = None,
    threads: arg.Threads = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Run at most N inferences at once; default: one per thread")
    ] = None,
    max_batch: Annotated[
        list[str] | None,
        typer.Option(metavar="ROWS | MODEL=ROWS", help="Most rows of requests that are inferred together, default 1"),
    ] = None,
    batch_wait: Annotated[
        list[str] | None,
        typer.Option(metavar="MS | MODEL=MS", help="Milliseconds to wait for more rows, default 0"),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="N | MODEL=N", help="Most requests of a model that wait, default 256; others are refused"),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="Time for a request, waiting included")
    ] = 30,
    receive_timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time for a client to send a request")
    ] = 30,
    stop_timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time to finish accepted requests after SIGTERM")
    ] = 30,
    drain: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Time to be not ready, but answer, before it stops after SIGTERM"),
    ] = 0,
    max_body: Annotated[str, typer.Option(metavar="64MB", help="Largest request")] = "64MB",
    max_answer: Annotated[str, typer.Option(metavar="256MB", help="Largest answer")] = "256MB",
    max_connections: Annotated[int, typer.Option(min=1, metavar="N", help="Most connections at once")] = 1024,
    sequences: Annotated[int, typer.Option(min=1, metavar="N", help="Answers that a language model gives at once")] = 4,
    max_context: Annotated[
        int,
        typer.Option(
            min=2,
            metavar="TOKENS",
            help="Most tokens of a prompt and its answer together",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = 4096,
    answer_timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time for an answer of a language model")
    ] = 600,
    poll: Annotated[
        float | None,
        typer.Option(
            min=0.1, metavar="SECONDS", help="Look for replaced files every so many seconds; default: only on SIGHUP"
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with a token that clients must send")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Certificate with its chain, PEM; makes it HTTPS")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Private key of the certificate, PEM")
    ] = None,
    verify_key: Annotated[
        Path | None, typer.Option(exists=True, help="Public key: serve only models that it verifies")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Check the weights inside of libraries, too, when they are loaded")
    ] = False,
    strict_readiness: Annotated[
        bool, typer.Option(help="Be not ready while a file of the repository has no loaded model")
    ] = True,
    log_json: Annotated[bool, typer.Option("--log-json", help="Write logs as lines of JSON")] = False,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log each inference")] = False,
    debug: arg.Debug = False,
) -> None:
    """Serve compiled models over HTTP and gRPC.

    The protocol is the Open Inference Protocol (KServe v2).
    SIGHUP loads replaced files; SIGTERM stops.

    Language models answer by OpenAI's API, too: /v1/chat/completions. A folder holds NAME.so, or NAME/VERSION/any.so.
    """
    given = locals()
    from aot.serve.command import run as run_server

    run_server(given, typer.echo)
