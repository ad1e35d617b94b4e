"""Requests that are wrong, huge, slow or cut off: each gets an error, and the server goes on."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc as grpc
from grpc import RpcError
from grpc import insecure_channel as channel

import aot
from aot.codegen.ir.loops import Var
from aot.ir.graph import Graph
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.movement.shape import Reshape
from aot.runtime.abi import DType
from tests.serve.conftest import listening

# Making a client takes longer than most tests.
CLIENT = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

X: dict[str, Any] = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
INFER = "/v2/models/softmax/infer"
LIMIT = 1 << 20


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Any]:
    with listening(models, max_body=LIMIT, receive_timeout=1.0) as one:
        yield one


@pytest.fixture(autouse=True)
def still_serves(server: Any) -> Iterator[None]:
    yield
    found = CLIENT.post(f"http://127.0.0.1:{server.port}{INFER}", json={"inputs": [X]})
    assert found.status_code == 200


def body(**changes: Any) -> bytes:
    return json.dumps({"inputs": [X | changes]}).encode()


def asking(*outputs: Any) -> bytes:
    return json.dumps({"inputs": [X], "outputs": outputs}).encode()


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b"", 400, "must be JSON"),
        (b"{", 400, "must be JSON"),
        (b"\xff\xfe", 400, "must be JSON"),
        (b"[" * 100_000, 400, "must be JSON"),
        (b'{"inputs": [{"name": "x", "datatype": %s}]}' % (b"[" * 1000 + b"]" * 1000), 400, "must be JSON"),
        (b"[]", 400, "must be an object"),
        (b"{}", 400, "inputs must be a list"),
        (b'{"inputs": [1]}', 400, "must be an object"),
        (b'{"inputs": [{}]}', 400, "name must be a text"),
        (b'{"inputs": []}', 400, "input 'x': must be given"),
        (json.dumps({"inputs": [X, X]}).encode(), 400, "must be given once"),
        (json.dumps({"inputs": [X], "outputs": 3}).encode(), 400, "outputs must be a list"),
        (json.dumps({"inputs": [X], "id": 3}).encode(), 400, "id must be a text"),
        (json.dumps({"inputs": [X], "parameters": []}).encode(), 400, "parameters: must be an object"),
        (json.dumps({"inputs": [X], "parameters": {"timeout": "x"}}).encode(), 400, "timeout must be a number"),
        (body(name="\ud800"), 400, "input: must be one of x"),
        (body(shape=None), 400, "shape must be a list of sizes"),
        (body(shape=[-1, 4]), 400, "shape must be a list of sizes"),
        (body(shape=[True, 4]), 400, "shape must be a list of sizes"),
        (body(shape=[1 << 70, 4]), 400, "shape must be a list of sizes"),
        (body(shape=[1] * 100), 400, "shape must be a list of sizes"),
        (body(shape=[1 << 39, 4]), 400, "data must be FP32"),
        (body(datatype=["FP32"]), 400, "datatype must be FP32"),
        (body(data="1234"), 400, "data must be a list"),
        (body(data=[1, 2, 3]), 400, "got 3 elements"),
        (body(data=[1, 2, 3, "4"]), 400, "data must be FP32[1, 4]"),
        (body(data=[1, 2, 3, None]), 400, "data must be FP32[1, 4]"),
        (body(data=[1, 2, 3, 1e300]), 400, "must be at most"),
        (body(data=[[1, 2], [3]]), 400, "data must be FP32[1, 4]"),
        (body(data=[1, 2, 3, {"a": 1}]), 400, "data must be FP32[1, 4]"),
        (body(parameters={"binary_data_size": 16}), 400, "binary_data_size must be from 0 to 0"),
        (body(parameters={"binary_data_size": -1}), 400, "binary_data_size must be from 0 to 0"),
        (body(parameters={"shared_memory_region": "a"}), 400, "shared_memory_region must be left out"),
        (json.dumps({"inputs": [X], "parameters": {"sequence_start": True}}).encode(), 400, "must be left out"),
        (asking({"name": "y"}, {"name": "y"}), 400, "output 'y': must be asked for once"),
        (asking({"name": "y", "parameters": {"classification": 3}}), 400, "classification must be left out"),
        (asking({"name": "y", "parameters": {"shared_memory_region": "a"}}), 400, "must be left out"),
        (asking({"name": "\ud83d"}), 400, "must be one of y"),
        (body(datatype="\ud83d"), 400, "datatype must be FP32"),
        (body(data="\ud83d"), 400, "data must be a list"),
        (b" " * (LIMIT + 1), 413, f"at most {LIMIT} bytes"),
    ],
)
def test_wrong_bodies_are_refused(server: Any, content: bytes, status: int, says: str) -> None:
    found = CLIENT.post(f"http://127.0.0.1:{server.port}{INFER}", content=content)
    assert found.status_code == status
    assert says in found.json()["error"]


@pytest.mark.parametrize(
    ("headers", "content", "status", "says"),
    [
        ({"inference-header-content-length": "-1"}, body(), 400, "must be a number up to"),
        ({"inference-header-content-length": "9999"}, body(), 400, "must be a number up to"),
        ({"inference-header-content-length": str(len(body()))}, body() + b"1234", 400, "bytes behind the JSON"),
        ({"content-encoding": "br"}, body(), 400, "must be gzip or deflate"),
        ({"content-encoding": "gzip"}, body(), 400, "must be gzip data"),
        ({"content-encoding": "gzip"}, gzip.compress(body(), mtime=0)[:-12], 400, "must be whole gzip data"),
        ({"content-encoding": "gzip"}, gzip.compress(bytes(4 * LIMIT), mtime=0), 413, f"at most {LIMIT} bytes"),
        ({"content-encoding": "deflate"}, zlib.compress(bytes(4 * LIMIT)), 413, f"at most {LIMIT} bytes"),
    ],
)
def test_wrong_headers_are_refused(
    server: Any, headers: dict[str, str], content: bytes, status: int, says: str
) -> None:
    found = CLIENT.post(f"http://127.0.0.1:{server.port}{INFER}", content=content, headers=headers)
    assert found.status_code == status
    assert says in found.json()["error"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_requests(server: Any, coding: str) -> None:
    content = gzip.compress(body(), mtime=0) if coding == "gzip" else zlib.compress(body())
    found = CLIENT.post(f"http://127.0.0.1:{server.port}{INFER}", content=content, headers={"content-encoding": coding})
    assert found.json()["outputs"][0]["data"] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 404),
        ("/v2/models/softmax/infer", "GET", 405),
        ("/v2/models/%2e%2e%2fetc/infer", "POST", 404),
        ("/v2/models/softmax/versions/x/infer", "POST", 404),
        ("/v2/repository/models/..%2f..%2fx/load", "POST", 404),
        ("/v2/models/" + "x" * 3000, "GET", 404),
    ],
)
def test_wrong_paths_are_refused(server: Any, path: str, method: str, status: int) -> None:
    assert CLIENT.request(method, f"http://127.0.0.1:{server.port}{path}").status_code == status


def test_not_a_number_comes_back_as_one(server: Any) -> None:
    found = CLIENT.post(f"http://127.0.0.1:{server.port}{INFER}", content=body(data=[float("nan"), 1, 2, 3]))
    assert np.isnan(json.loads(found.content)["outputs"][0]["data"][0])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"POST /v2/models/softmax/infer HTTP/1.1\r\nhost: x\r\nx-slow: ",
        b"POST /v2/models/softmax/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
        b"POST /v2/models/softmax/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["silent", "in the header", "in the body", "in a chunk"],
)
def test_slow_clients_lose_their_connection(server: Any, text: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as one:
        one.sendall(text)
        begin = time.monotonic()
        answer = b""
        while part := received(one):
            answer += part
        assert time.monotonic() - begin < 60
        assert answer == b"" or b" 408 " in answer


def received(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 16)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("text", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/9\r\n\r\n", b"\0" * 5000])
def test_other_protocols(server: Any, text: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as one:
        one.sendall(text)
        assert not received(one).startswith(b"HTTP/1.1 200")


def test_a_client_that_leaves_in_the_middle(server: Any) -> None:
    for _ in range(20):
        one = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        one.sendall(b"POST /v2/models/softmax/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        one.close()


def test_a_token_is_needed_but_for_health(models: Path) -> None:
    with listening(models, token="s3cret") as server:
        url = f"http://127.0.0.1:{server.port}"
        right = {"authorization": "Bearer s3cret"}
        for path in ("/v2", "/metrics", "/v2/models/pair", "/v2/repository/index"):
            assert CLIENT.get(url + path).status_code == 401
            assert CLIENT.get(url + path, headers={"authorization": "Bearer s3cre\u0301t".encode()}).status_code == 401
        assert CLIENT.get(url + "/v2", headers=right).status_code == 200
        assert CLIENT.get(url + "/v2/health/ready").status_code == 200
        client = grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
        assert client.is_server_live()
        with pytest.raises(Exception, match="must have the server's token"):
            client.get_model_metadata("pair")
        assert client.get_model_metadata("pair", headers=right).name == "pair"


def test_the_server_speaks_tls(models: Path, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *name]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with listening(models, tls_key=key, tls_certificate=certificate) as server:
        context = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"https://127.0.0.1:{server.port}/v2", verify=context).json()["name"] == "aot"
        address = f"localhost:{server.grpc_port}"
        client = grpc.InferenceServerClient(address, ssl=True, root_certificates=str(certificate))
        assert client.is_server_ready()


def test_a_token_where_the_application_is_mounted(models: Path) -> None:
    settings, repository = (import_module(f"aot.serve.{name}") for name in ("settings", "repository"))
    one = repository.Repository([str(models)], settings.Settings(token="s3cret"))
    mounted = import_module("aot.serve.http").Application(one).asgi()
    app = import_module("starlette.applications").Starlette(
        routes=[import_module("starlette.routing").Mount("/models", mounted)]
    )

    async def codes() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x/models") as client:
            right = {"authorization": "Bearer s3cret"}
            return [
                (await client.get(path, headers=given)).status_code
                for path, given in (("/v2/health/live", {}), ("/v2", {}), ("/v2", right))
            ]

    assert asyncio.run(codes()) == [200, 401, 200]


def test_texts_that_are_none(texts: Any) -> None:
    """Bytes that are no UTF-8 come back as they were; the half of a surrogate pair has no bytes."""
    for text, status in (("a", 200), ("a\udcff", 200), ("\ud83d", 400), ("\ude00a", 400)):
        tensor = {"name": "x", "shape": [1], "datatype": "BYTES", "data": [text]}
        content = json.dumps({"inputs": [tensor]})
        found = CLIENT.post(f"http://127.0.0.1:{texts.port}/v2/models/m/infer", content=content)
        assert found.status_code == status
        if status == 200:
            assert found.json()["outputs"][0]["data"] == [text]


@pytest.fixture
def texts(tmp_path: Path) -> Iterator[Any]:
    graph = Graph("m")
    whole = graph.add(Constant(DType.I64), name="whole", data=np.array([-1])).out_port(0)
    x = graph.add(Parameter(DType.STRING, (Var("n"),)), name="x").out_port(0)
    graph.add(Result(), graph.add(Reshape(), x, whole).out_port(0), name="y")
    aot.compile_model(graph).export_model(tmp_path / "m.so")
    with listening(tmp_path / "m.so") as server:
        yield server


def test_answers_have_a_limit(models: Path) -> None:
    """A row is 4 numbers: 16 bytes, or 100 in JSON, at most."""
    with listening(models / "softmax.so", max_answer=1000) as server:
        address = f"http://127.0.0.1:{server.port}{INFER}"
        client = grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
        for rows, binary, status in ((10, False, 200), (11, False, 413), (11, True, 200), (63, True, 413)):
            asked: dict[str, Any] = {"inputs": [X | {"shape": [rows, 4], "data": [1] * 4 * rows}]}
            asked["outputs"] = [{"name": "y", "parameters": {"binary_data": binary}}]
            found = CLIENT.post(address, json=asked)
            assert found.status_code == status
            assert status == 200 or "answer: must have at most 1000 bytes" in found.json()["error"]
        given = grpc.InferInput("x", [63, 4], "FP32")
        given.set_data_from_numpy(np.ones((63, 4), np.float32))
        with pytest.raises(grpc.InferenceServerException, match="at most 1000 bytes"):
            client.infer("softmax", [given])
        wanted = [grpc.InferRequestedOutput("y"), grpc.InferRequestedOutput("y")]
        with pytest.raises(grpc.InferenceServerException, match="must be asked for once"):
            client.infer("softmax", [given], outputs=wanted)
        with pytest.raises(grpc.InferenceServerException, match="sequence_id must be left out"):
            client.infer("softmax", [given], sequence_id=7)
        with pytest.raises(grpc.InferenceServerException, match="classification must be left out"):
            client.infer("softmax", [given], outputs=[grpc.InferRequestedOutput("y", class_count=2)])


@pytest.mark.parametrize("data", [b"\xff" * 20, b"\n\x80\x80\x80\x80\x08", b"\n\x02\xff\xfe", b"\n\x10x"])
def test_messages_that_are_none(server: Any, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """By methods with one answer and with streams: an error of the client, and no fault in the log."""
    service = "/inference.GRPCInferenceService/"
    with channel(f"127.0.0.1:{server.grpc_port}") as one:
        for method in ("ModelInfer", "ModelReady", "ModelMetadata", "RepositoryModelLoad"):
            with pytest.raises(RpcError) as told:
                one.unary_unary(service + method)(data, timeout=20)
            assert told.value.code().name == "INVALID_ARGUMENT"
        answers = list(one.stream_stream(service + "ModelStreamInfer")(iter([data, data]), timeout=20))
    assert len(answers) == 2 and all(b"must be a message ModelInferRequest" in answer for answer in answers)
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
