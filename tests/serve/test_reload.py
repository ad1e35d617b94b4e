"""Models are replaced, added and removed while clients ask: no request is dropped."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import onnx
import pytest
import tritonclient.grpc as grpc
from typer.testing import CliRunner

import aot
from aot import cli
from aot.runtime.abi import WEIGHTS_SECTION
from aot.runtime.describe import hint
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.loading.elf import ElfFile
from aot.serve.command import settings_of
from aot.serve.repository import scan
from aot.serve.server import Server
from aot.serve.settings import Settings
from aot.tools.supply import signature
from tests import libraries
from tests.serve.conftest import listening
from tests.waiting import until

# Making a client takes longer than most tests.
CLIENT = httpx.Client(timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

ROOT = Path(__file__).parents[2]
BODY = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}


@pytest.fixture(scope="module")
def factors(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Libraries that multiply by 2 and by 3."""
    folder = tmp_path_factory.mktemp("factors")
    for n in (2, 3):
        text = f"m (float[1] x) => (float[1] y) <float c = {{{n}}}> {{ y = Mul(x, c) }}"
        onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'), folder / f"{n}.onnx")
        aot.compile_model(folder / f"{n}.onnx").export_model(folder / f"{n}.so")
    return {n: folder / f"{n}.so" for n in (2, 3)}


def put(source: Path, target: Path) -> None:
    """Replace a library in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target.with_name(".new"))
    target.with_name(".new").rename(target)


def value(server: Any, path: str = "m") -> float:
    found = CLIENT.post(f"http://127.0.0.1:{server.port}/v2/models/{path}/infer", json=BODY).raise_for_status()
    return found.json()["outputs"][0]["data"][0]


def test_a_replaced_file_drops_no_request(factors: dict[int, Path], tmp_path: Path) -> None:
    put(factors[2], tmp_path / "m.so")
    with listening(tmp_path / "m.so") as server:
        seen, stop, failed = set[float](), threading.Event(), list[Exception]()

        def ask() -> None:
            try:
                while not stop.is_set():
                    seen.add(value(server))
            except Exception as error:
                failed.append(error)

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        for n in (3, 2) * 10:
            put(factors[n], tmp_path / "m.so")
            CLIENT.post(f"http://127.0.0.1:{server.port}/v2/repository/models/m/load").raise_for_status()
            assert value(server) == n
        stop.set()
        for client in clients:
            client.join()
        assert failed == []
        assert seen == {2, 3}


def test_a_request_on_its_way_is_answered_by_the_model_it_asked(factors: dict[int, Path], tmp_path: Path) -> None:
    put(factors[2], tmp_path / "m.so")
    body = json.dumps(BODY).encode()
    head = f"POST /v2/models/m/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with listening(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port), 10) as slow:
        slow.sendall(head.encode() + body[:10])
        served = server.repository.find("m")
        until(lambda: sys.getrefcount(served) > 3)  # the handler has it
        put(factors[3], tmp_path / "m.so")
        CLIENT.post(f"http://127.0.0.1:{server.port}/v2/repository/models/m/load").raise_for_status()
        assert value(server) == 3
        slow.sendall(body[10:])
        answer = b"".join(iter(lambda: slow.recv(1 << 16), b""))
        assert b" 200 " in answer
        assert b'"data":[2.0]' in answer


def test_replaced_libraries_are_unloaded(factors: dict[int, Path], tmp_path: Path) -> None:
    with ExitStack() as stack:
        put(factors[2], tmp_path / "m.so")
        server = stack.enter_context(listening(tmp_path))
        models = []
        for n in (3, 2) * 3:
            models.append(weakref.ref(server.repository.find("m").model))
            put(factors[n], tmp_path / "m.so")
            CLIENT.post(f"http://127.0.0.1:{server.port}/v2/repository/models/m/load").raise_for_status()
            assert value(server) == n
        gc.collect()
        assert sum(ref() is not None for ref in models) <= 1


@pytest.mark.parametrize(("data", "code"), [(b"", 4), (b"text", 4), (None, 2)])
def test_a_server_without_a_model_says_why(data: bytes | None, code: int, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "m.so").write_bytes(data)
    done = CliRunner().invoke(cli.app, ["serve", str(tmp_path), "--port", "0"])
    assert done.exit_code == code, done.output


def test_folders_of_versions_are_polled(factors: dict[int, Path], tmp_path: Path) -> None:
    put(factors[2], tmp_path / "m" / "1" / "any.so")
    with listening(tmp_path, poll=0.05) as server:
        assert value(server) == 2
        put(factors[3], tmp_path / "m" / "10" / "any.so")
        put(factors[2], tmp_path / "m" / "9" / "any.so")
        until(lambda: server.repository.versions("m") == ["1", "9", "10"])
        assert (value(server), value(server, "m/versions/1"), value(server, "m/versions/10")) == (3, 2, 3)
        put(factors[2], tmp_path / "other.so")
        until(lambda: server.repository.versions("other") == ["1"])
        shutil.rmtree(tmp_path / "m" / "10")
        until(lambda: server.repository.versions("m") == ["1", "9"])
        assert value(server) == 2
        text = CLIENT.get(f"http://127.0.0.1:{server.port}/metrics").text
        assert 'version="10"' not in text
        assert 'aot_requests_total{code="200",model="m",version="9"} 1.0' in text


def test_a_damaged_file_leaves_the_old_one_in_service(factors: dict[int, Path], tmp_path: Path) -> None:
    put(factors[2], tmp_path / "m.so")
    with listening(tmp_path) as server:
        damaged = tmp_path.parent / "damaged.so"
        damaged.write_bytes(factors[3].read_bytes()[:5000])
        put(damaged, tmp_path / "m.so")
        answer = CLIENT.post(f"http://127.0.0.1:{server.port}/v2/repository/models/m/load")
        assert (answer.status_code, value(server)) == (400, 2)
        [entry] = CLIENT.post(f"http://127.0.0.1:{server.port}/v2/repository/index").json()
        assert entry["state"] == "READY"
        assert "m.so" in entry["reason"]


@pytest.mark.parametrize(
    ("files", "sources", "found"),
    [
        (["a.so"], ["a.so"], {"a": ["1"]}),
        (["a.so"], ["b=a.so"], {"b": ["1"]}),
        (["f/a.so", "f/b.so", "f/.c.so", "f/notes.txt"], ["f"], {"a": ["1"], "b": ["1"]}),
        (["f/a/2/x.so", "f/a/03/x.so", "f/a/new/x.so", "f/b/1/x.txt"], ["f"], {"a": ["2", "3"]}),
        (["a.so", "f/b.so"], ["a.so", "f"], {"a": ["1"], "b": ["1"]}),
        ([], ["none.so"], "must be a compiled model or a folder"),
        (["a.so", "f/a.so"], ["a.so", "f"], "must be one file"),
        (["f/a/1/x.so", "f/a/1/y.so"], ["f"], "must hold one compiled model, got 2"),
        (["a b/c?.so"], ["a b/c?.so"], "must be plain text"),
    ],
)
def test_scan_returns_the_models_of_sources(
    files: list[str], sources: list[str], found: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    if isinstance(found, str):
        with pytest.raises(UsageError, match=found):
            scan(sources)
    else:
        assert {name: sorted(versions) for name, versions in scan(sources).items()} == found


def make_keys(folder: Path) -> None:
    """Write key.pem and key.pub."""
    for command in ("genpkey -algorithm ed25519 -out key.pem", "pkey -in key.pem -pubout -out key.pub"):
        subprocess.run(["openssl", *command.split()], check=True, cwd=folder)


@pytest.mark.parametrize("order", [("m.so", "m.so.sig"), ("m.so.sig", "m.so")])
@pytest.mark.parametrize("way", ["load", "poll", "hangup"])
def test_files_that_were_refused_are_loaded_once_they_fit_together(
    factors: dict[int, Path], tmp_path: Path, order: tuple[str, str], way: str
) -> None:
    make_keys(tmp_path)
    old, new = tmp_path / "old" / "m.so", tmp_path / "new" / "m.so"
    for n, path in ((2, old), (3, new)):
        put(factors[n], path)
        signature.sign(path, tmp_path / "key.pem")
    with listening(old.parent, verify_key=tmp_path / "key.pub") as server:
        repository, loop = server.repository, server._loop

        def change(**given: object) -> list[str]:
            return asyncio.run_coroutine_threadsafe(repository.change(**given), loop).result(60)

        url = f"http://127.0.0.1:{server.port}/v2/repository/models/m/load"
        assert value(server) == 2
        put(new.with_name(order[0]), old.with_name(order[0]))
        assert len(change(again=False)) == 1
        assert change(again=False) == []  # the same files: polling does not try them again
        for _ in range(2):
            answer = CLIENT.post(url, json={})
            assert (answer.status_code, value(server)) == (400, 2)
            assert "must be signed" in answer.json()["error"]
        put(new.with_name(order[1]), old.with_name(order[1]))
        if way == "load":
            assert CLIENT.post(url, json={}).status_code == 200
        else:
            assert change(again=way == "hangup") == []
        assert value(server) == 3
        [entry] = repository.index()
        assert (entry["state"], entry["reason"]) == ("READY", "")
        assert CLIENT.post(url, json={}).status_code == 200


def test_only_signed_libraries_are_served(factors: dict[int, Path], tmp_path: Path) -> None:
    make_keys(tmp_path)
    for n in (2, 3):
        put(factors[n], tmp_path / "models" / f"m{n}.so")
    signature.sign(tmp_path / "models" / "m2.so", tmp_path / "key.pem")
    with listening(tmp_path / "models", verify_key=tmp_path / "key.pub") as server:
        assert value(server, "m2") == 2
        assert server.repository.versions("m3") == []
        [entry] = [e for e in server.repository.index() if e["name"] == "m3"]
        assert "must have a signature" in entry["reason"]


def test_the_file_whose_signature_was_checked_is_the_one_that_is_loaded(
    factors: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another library that takes the name between both steps is not run."""
    make_keys(tmp_path)
    path = tmp_path / "models" / "m.so"
    put(factors[2], path)
    signature.sign(path, tmp_path / "key.pem")
    check = signature.verify_stream

    def then_replaced(stream: BinaryIO, library: Path, key: Path) -> None:
        check(stream, library, key)
        put(factors[3], library)

    monkeypatch.setattr(signature, "verify_stream", then_replaced)
    with listening(path.parent, verify_key=tmp_path / "key.pub") as server:
        assert value(server) == 2


def test_a_server_is_ready_when_all_its_files_are_loaded(factors: dict[int, Path], tmp_path: Path) -> None:
    put(factors[2], tmp_path / "m.so")
    (tmp_path / "broken.so").write_bytes(factors[3].read_bytes()[:5000])
    for strict, status in ((True, 503), (False, 200)):
        with listening(tmp_path, strict_readiness=strict) as server:
            url = f"http://127.0.0.1:{server.port}/v2"
            client = grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
            found = CLIENT.get(f"{url}/health/ready")
            assert (found.status_code, value(server)) == (status, 2)
            if strict:
                assert "broken version 1" in found.json()["error"]
                with pytest.raises(grpc.InferenceServerException, match="broken version 1"):
                    client.is_server_ready()
            assert client.is_server_live()
            put(factors[3], tmp_path / "broken.so")
            assert CLIENT.post(f"{url}/repository/models/broken/load").status_code == 200
            assert CLIENT.get(f"{url}/health/ready").status_code == 200
            assert CLIENT.post(f"{url}/repository/models/broken/unload").status_code == 200
            assert CLIENT.get(f"{url}/health/ready").status_code == 200
        (tmp_path / "new").write_bytes(b"damaged")
        (tmp_path / "new").rename(tmp_path / "broken.so")


def test_weights_are_checked_by_strict(tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    libraries.library(ROOT / "examples" / "digits" / "model.xml", path)
    data = bytearray(path.read_bytes())
    with path.open("rb") as stream:
        data[ElfFile(stream, "m.so").find(WEIGHTS_SECTION).offset] ^= 1
    path.unlink()
    path.write_bytes(data)
    with listening(tmp_path) as server:
        assert server.repository.versions("m") == ["1"]
    with pytest.raises(CorruptError), listening(tmp_path, strict=True):
        pass


def test_settings_by_model() -> None:
    given = {f.name: f.default for f in fields(Settings) if f.name != "token"}
    given |= {
        "token_file": None,
        "max_body": "1MB",
        "max_answer": "2MB",
        "prefix_cache": "0",
        "batch_wait": None,
        "max_batch": None,
        "lora": None,
    }
    given |= {"queue": None}
    found = settings_of(given | {"max_batch": ["a=4", "8"], "queue": ["a=2"], "batch_wait": ["a=5", "b=6"]})
    assert (found.max_batch, found.queue, found.batch_wait, found.max_answer) == (8, 256, 0, 2_000_000)
    assert (found.of("a").max_batch, found.of("a").queue, found.of("a").batch_wait) == (4, 2, 0.005)
    assert (found.of("b").max_batch, found.of("b").queue, found.of("b").batch_wait) == (8, 256, 0.006)
    for wrong in ({"queue": ["a=0"]}, {"queue": ["a=x"]}, {"max_batch": ["0"]}, {"batch_wait": ["a=nan"]}):
        with pytest.raises(UsageError, match="serve: "):
            settings_of(given | wrong)


def test_the_command_stops_when_all_is_answered(factors: dict[int, Path], tmp_path: Path) -> None:
    """Requests that were accepted before SIGTERM are answered; SIGHUP loads what was replaced."""
    put(factors[2], tmp_path / "m.so")
    command = [sys.executable, "-m", "aot", "serve", str(tmp_path / "m.so"), "--port", "0", "--log-json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, "--log-requests"],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        server = type("Found", (), {"port": int(process.stdout.readline().split(":")[2].split("/")[0])})
        assert value(server) == 2
        put(factors[3], tmp_path / "m.so")
        process.send_signal(signal.SIGHUP)
        until(lambda: value(server) == 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        lines = process.stderr.read()
    assert '"message": "inferred", "model": "m", "version": "1"' in lines
    assert '"message": "stopping: 0 requests wait"' in lines


def test_several_processes_answer_at_one_port(factors: dict[int, Path], tmp_path: Path) -> None:
    """SIGHUP reaches all of them, one that is killed is replaced, figures are those of all, and SIGTERM ends all."""
    put(factors[2], tmp_path / "m.so")
    command = [sys.executable, "-m", "aot", "serve", str(tmp_path / "m.so"), "--port", "0", "--workers", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        server: Any = type("Found", (), {"port": int(process.stdout.readline().split(":")[2].split("/")[0])})

        def workers() -> list[int]:
            return [int(n) for n in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]

        until(lambda: len(workers()) == 2)
        first = workers()[0]
        assert [value(server) for _ in range(8)] == [2] * 8
        figures = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
        assert 'aot_requests_total{code="200",model="m",version="1"} 8.0' in figures
        refused = httpx.post(f"http://127.0.0.1:{server.port}/v2/repository/models/m/unload")
        assert refused.status_code == 400 and "several --workers" in refused.text
        os.kill(first, signal.SIGKILL)
        until(lambda: len(workers()) == 2 and first not in workers())
        put(factors[3], tmp_path / "m.so")
        process.send_signal(signal.SIGHUP)
        until(lambda: [value(server) for _ in range(8)] == [3] * 8)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert f"process {first} has ended with -9: another one starts" in process.stderr.read()
    assert list(tmp_path.glob("aot-serve-*")) == []


def test_a_first_process_that_cannot_start_ends_all(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aot", "serve", str(tmp_path), "--port", "0", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == UsageError.exit_code
    assert done.stderr.count("there must be a compiled model") == 1


def test_a_missing_package_is_named(factors: dict[int, Path]) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; import cli; cli.app(['serve', sys.argv[1]])"
    command = [sys.executable, "-c", code, str(factors[2])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 5
    assert "needs the package uvicorn: pip install 'aot[serve]'" in done.stderr


def test_a_folder_without_libraries_says_that_models_are_compiled_before(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="there must be a compiled model, got none") as caught:
        Server([str(tmp_path)], Settings(port=0)).run()
    assert "aot compile" in hint(caught.value)
