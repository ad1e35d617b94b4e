"""`aot serve`: compiled models behind the Open Inference Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aot import arguments as arg


def serve(
    models: Annotated[list[str], typer.Argument(metavar="m.so | NAME=m.so | FOLDER...", help="Compiled models")],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: all")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="For HTTP; 0: a free one")] = 8000,
    grpc_port: Annotated[int | None, typer.Option(min=0, max=65535, help="For gRPC; default: none")] = None,
    threads: arg.Threads = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Inferences at once; default: as many as threads")] = None,
    max_batch: Annotated[int, typer.Option(min=1, help="Infer requests together, up to so many rows")] = 1,
    batch_wait: Annotated[float, typer.Option(min=0, metavar="MS", help="Wait so long for more rows")] = 0,
    queue: Annotated[int, typer.Option(min=1, help="Requests of a model that may wait")] = 256,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Of a request")] = 30,
    receive_timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="To send a request")] = 30,
    stop_timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="To end what was accepted")] = 30,
    max_body: Annotated[str, typer.Option(metavar="64MB", help="Most bytes of a request")] = "64MB",
    max_connections: Annotated[int, typer.Option(min=1, help="Most connections")] = 1024,
    sequences: Annotated[int, typer.Option(min=1, help="Answers of a language model at once")] = 4,
    max_context: Annotated[int, typer.Option(min=2, help="Most tokens of a prompt and its answer")] = 4096,
    answer_timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Of such an answer")] = 600,
    poll: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Look for replaced files")] = None,
    token_file: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Clients must send it")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="PEM, with chain")] = None,
    tls_key: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="PEM")] = None,
    verify_key: Annotated[Path | None, typer.Option(exists=True, help="Serve only what it has signed")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as lines of JSON")] = False,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="A line for each inference")] = False,
    debug: arg.Debug = False,
) -> None:
    """Serve compiled models by the Open Inference Protocol (KServe v2). SIGHUP: load what was replaced; SIGTERM: stop.

    Language models answer by OpenAI's API, too: /v1/chat/completions. A folder holds NAME.so, or NAME/VERSION/any.so.
    """
    given = locals()
    from aot.serve.command import run as run_server

    run_server(given, typer.echo)
