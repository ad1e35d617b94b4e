"""`aot serve`: compiled models behind the Open Inference Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.options.declaration import Group


def serve(
    models: Annotated[
        list[str], argument(metavar="m.so | NAME=m.so | FOLDER...", help="Compiled models, or folders of them")
    ],
    host: Annotated[str, option(help="Address to listen at; 0.0.0.0: all")] = "127.0.0.1",
    port: Annotated[int, option(min=0, max=65535, help="Port of HTTP; 0: a free one")] = 8000,
    grpc_port: Annotated[int | None, option(min=0, max=65535, help="Port of gRPC; default: no gRPC")] = None,
    workers: Annotated[
        int, option(min=1, metavar="N", help="Processes that answer at the port, each with its own queue")
    ] = 1,
    threads: arg.Threads = None,
    jobs: Annotated[
        int | None, option(min=1, metavar="N", help="Run at most N inferences at once; default: one per thread")
    ] = None,
    max_batch: Annotated[
        list[str] | None,
        option(metavar="ROWS | MODEL=ROWS", help="Most rows of requests that are inferred together, default 1"),
    ] = None,
    batch_wait: Annotated[
        list[str] | None, option(metavar="MS | MODEL=MS", help="Milliseconds to wait for more rows, default 0")
    ] = None,
    queue: Annotated[
        list[str] | None,
        option(metavar="N | MODEL=N", help="Most requests of a model that wait, default 256; others are refused"),
    ] = None,
    timeout: Annotated[float, option(min=0.001, metavar="SECONDS", help="Time for a request, waiting included")] = 30,
    receive_timeout: Annotated[
        float, option(min=0.1, metavar="SECONDS", help="Time for a client to send a request")
    ] = 30,
    stop_timeout: Annotated[
        float, option(min=0.1, metavar="SECONDS", help="Time to finish accepted requests after SIGTERM")
    ] = 30,
    drain: Annotated[
        float, option(min=0, metavar="SECONDS", help="Time to be not ready, but answer, before it stops after SIGTERM")
    ] = 0,
    max_body: Annotated[str, option(metavar="64MB", help="Largest request")] = "64MB",
    max_answer: Annotated[str, option(metavar="256MB", help="Largest answer")] = "256MB",
    max_connections: Annotated[int, option(min=1, metavar="N", help="Most connections at once")] = 1024,
    sequences: Annotated[int, option(min=1, metavar="N", help="Answers that a language model gives at once")] = 4,
    max_context: Annotated[
        int,
        option(
            min=2,
            metavar="TOKENS",
            help="Most tokens of a prompt and its answer together",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = 4096,
    prefix_cache: Annotated[
        str,
        option(
            metavar="512MB",
            help="Keys and values that a language model keeps, for prompts that begin as others did; 0: none",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = "512MB",
    cache: Annotated[
        Path | None,
        option(
            exists=True,
            file_okay=False,
            help="Folder that keeps these keys and values, too, up to 8 times as many, for the next start",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = None,
    look_up: Annotated[
        int,
        option(
            min=0,
            metavar="N",
            help="Compute N tokens at once where they followed the last ones before (--all-logits); 0: none",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = 0,
    lora: Annotated[
        list[str] | None,
        option(
            metavar="NAME=PATH",
            help="Adapter for requests to MODEL:NAME: a folder of PEFT, or GGUF (--lora-rank)",
            rich_help_panel=Group.LANGUAGE,
        ),
    ] = None,
    answer_timeout: Annotated[
        float, option(min=0.1, metavar="SECONDS", help="Time for an answer of a language model")
    ] = 600,
    poll: Annotated[
        float | None,
        option(
            min=0.1, metavar="SECONDS", help="Look for replaced files every so many seconds; default: only on SIGHUP"
        ),
    ] = None,
    token_file: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="File with a token that clients must send")
    ] = None,
    tls_certificate: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Certificate with its chain, PEM; makes it HTTPS")
    ] = None,
    tls_key: Annotated[
        Path | None, option(exists=True, dir_okay=False, help="Private key of the certificate, PEM")
    ] = None,
    verify_key: Annotated[
        Path | None, option(exists=True, help="Public key: serve only models that it verifies")
    ] = None,
    strict: Annotated[
        bool, option("--strict", help="Check the weights inside of libraries, too, when they are loaded")
    ] = False,
    strict_readiness: Annotated[
        bool, option(help="Be not ready while a file of the repository has no loaded model")
    ] = True,
    log_json: Annotated[bool, option("--log-json", help="Write logs as lines of JSON")] = False,
    log_requests: Annotated[bool, option("--log-requests", help="Log each inference")] = False,
    debug: arg.Debug = False,
) -> None:
    """Serve compiled models over HTTP and gRPC.

    The protocol is the Open Inference Protocol (KServe v2).
    SIGHUP loads replaced files; SIGTERM stops.

    Language models answer by OpenAI's API, too: /v1/chat/completions. A folder holds NAME.so, or NAME/VERSION/any.so.
    """
    arguments = locals()
    from aot.serve.command import run as run_server

    run_server(arguments, echo)
