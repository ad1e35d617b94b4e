"""Connections: headers have a limit, a client that ends its sending gets its answer, one that is gone ends its work."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.conftest import listening
from tests.waiting import becomes_true

X = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
BODY = json.dumps({"inputs": [X]}).encode()
POST = b"POST /v2/models/softmax/infer HTTP/1.1\r\nhost: x\r\n"
SIZED = POST + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
CHUNKS = b"5\r\n" + BODY[:5] + b"\r\n%x\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n"


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Any]:
    with listening(models / "softmax.so") as one:
        yield one


def answer(port: int, *parts: bytes, half: bool) -> bytes:
    """Return all that the server sends; b"" if it closes the connection while a part is on its way."""
    with socket.create_connection(("127.0.0.1", port), 20) as one:
        try:
            for part in parts:
                one.sendall(part)
            if half:
                one.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: one.recv(1 << 16), b""))
        except OSError:
            return b""


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (SIZED, 1),
        (CHUNKED + CHUNKS + b"0\r\n\r\n", 1),
        (CHUNKED + CHUNKS + b"0\r\ntrailer: 1\r\n\r\n", 1),
        (SIZED * 3, 3),
        (b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n", 1),
        (b"GET /v2 HTTP/1.0\r\n\r\n", 1),
        (SIZED[:-1], 0),
        (SIZED[:40], 0),
        (b"", 0),
    ],
)
def test_a_client_that_ends_its_sending_gets_its_answers(server: Any, sent: bytes, answers: int) -> None:
    assert answer(server.port, sent, half=True).count(b" 200 OK") == answers


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v2 HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 70_000,
        b"GET /v2 HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"a: b\r\n" * 40_000 + b"\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"a" * 70_000,
        b"GET /" + b"v" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /v2/repository/index HTTP/1.1\r\ncontent-length: 0\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
        CHUNKED + CHUNKS + b"0\r\nx: " + b"a" * 500_000,
        CHUNKED + b"1;" + b"a" * 500_000,
    ],
    ids=["unfinished", "a value", "many", "a name", "a path", "a post", "a trailer", "an extension"],
)
def test_headers_have_a_limit(server: Any, sent: bytes) -> None:
    """By pieces and whole: 431, or 400 where the parser's own limit is lower, and the server goes on."""
    for parts in ([sent], [sent[at : at + 5000] for at in range(0, len(sent), 5000)]):
        found = answer(server.port, *parts, half=False)
        assert found[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400")
        assert found.count(b"HTTP/1.1") == 1
    assert b" 200 OK" in answer(server.port, SIZED, half=True)


def test_a_header_below_the_limit_and_a_large_body(server: Any) -> None:
    head = POST + b"x: " + b"a" * 60_000 + b"\r\n"
    body = BODY + b" " * 1_000_000
    sent = head + b"content-length: %d\r\n\r\n" % len(body) + body
    assert b" 200 OK" in answer(server.port, sent, half=True)
    assert answer(server.port, sent + sent, half=True).count(b" 200 OK") == 2


def test_a_client_that_is_gone_is_told_from_one_that_ended_its_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aot.serve.connections._PROBE_SECONDS", 0.1)
    uvicorn = import_module("uvicorn")
    connection = import_module("aot.serve.connections").Connection
    told: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.request":
            pass
        with_time = asyncio.wait_for(receive(), 1.5)
        try:
            told.append((await with_time)["type"])
        except TimeoutError:
            told.append("there")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    model = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=connection, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([model])))
    thread.start()
    try:
        request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
        port = model.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 20) as gone:
            gone.sendall(request)
            time.sleep(0.1)
        becomes_true(lambda: told)
        assert told == ["http.disconnect"]
        found = answer(port, request, half=True)
        assert told[1:] == ["there"]
        assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    finally:
        server.should_exit = True
        thread.join(20)


def test_a_server_that_drains_answers_and_is_not_ready(models: Path) -> None:
    with listening(models / "softmax.so", drain=60) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{url}/v2/health/ready").status_code == 200
        server.stop()
        end = time.monotonic() + 20
        while httpx.get(f"{url}/v2/health/ready").status_code != 503:
            assert time.monotonic() < end
        assert httpx.get(f"{url}/v2/health/live").status_code == 200
        assert httpx.post(f"{url}/v2/models/softmax/infer", content=BODY).status_code == 200
        server.stop()  # the second one ends it
        while True:
            try:
                httpx.get(f"{url}/v2/health/live")
            except httpx.TransportError:
                break
            assert time.monotonic() < end
