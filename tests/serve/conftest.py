"""Servers that listen, in a thread of the test's process, and the models that they serve."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import pytest

import aot
from aot.serve.settings import Settings

if TYPE_CHECKING:
    from aot.serve.server import Server

TEXTS = {
    "types": """m (bool[n] a, int8[n] b, int16[n] c, int32[n] d, int64[n] e, uint8[n] f, uint16[n] g, uint32[n] h,
        uint64[n] i, float16[n] j, float[n] k, double[n] l, bfloat16[n] m) => (bool[n] oa, int8[n] ob, int16[n] oc,
        int32[n] od, int64[n] oe, uint8[n] of, uint16[n] og, uint32[n] oh, uint64[n] oi, float16[n] oj, float[n] ok,
        double[n] ol, bfloat16[n] om) { oa = Not(a) ob = Add(b, b) oc = Add(c, c) od = Add(d, d) oe = Add(e, e)
        of = Add(f, f) og = Add(g, g) oh = Add(h, h) oi = Add(i, i) oj = Add(j, j) ok = Add(k, k) ol = Add(l, l)
        om = Add(m, m) }""",
    "labels": """m (int64[n] x) => (string[n] y)
        { y = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1, 2], values_strings = ["", "h\u00e9", "two"]> (x) }""",
    "softmax": "m (float[n,4] x) => (float[n,4] y) { y = Softmax <axis = 0> (x) }",
    "pair": "m (float[n,4] x, float[n,4] y) => (float[n,4] s, float[n,4] d) { s = Add(x, y) d = Sub(x, y) }",
    "square": "m (float[n,n] x) => (float[n,n] y) { y = Add(x, x) }",
}
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.xml"


@contextmanager
def listening(*sources: Path | str, **settings: object) -> Iterator[Server]:
    """A server of `sources` on free ports, with gRPC, until the block ends."""
    given: dict[str, Any] = {"port": 0, "grpc_port": 0, "threads": 1} | settings
    server: Server = import_module("aot.serve.server").Server([str(s) for s in sources], Settings(**given))
    failed: list[BaseException] = []

    def run() -> None:
        try:
            server.run()
        except BaseException as error:
            failed.append(error)
            server.ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert server.ready.wait(20)
    try:
        if failed:
            raise failed[0]
        yield server
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, compiled from texts of ONNX."""
    folder = tmp_path_factory.mktemp("served")
    for name, text in TEXTS.items():
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]> {text}')
        onnx.save(model, folder / f"{name}.onnx")
        aot.compile_model(folder / f"{name}.onnx").export_model(folder / f"{name}.so")
    return folder


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with up to 64 images."""
    path = tmp_path_factory.mktemp("models") / "digits.so"
    aot.compile_model(DIGITS, shapes={"image": ("n", 1, 8, 8)}, dims={"n": (1, 64)}).export_model(path)
    return path
