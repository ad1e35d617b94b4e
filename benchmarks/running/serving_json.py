"""Requests in JSON: the server beside FastAPI with ONNX Runtime, in the lines that people write.

python -m benchmarks.running.serving_json --seconds 5 --clients 1 8 32     needs wrk; extras serve, test, bench

Both servers run; clients ask one, then the other. Prints requests a second, latencies, and processor time a request.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import aot
from benchmarks.running.serving import LATENCY, MICROSECONDS, number, perceptron, processor_seconds, serving

FASTAPI = """
import socket, sys
import numpy as np, onnxruntime, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Request(BaseModel):
    shape: list[int]
    data: list[float]

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
app = FastAPI()

@app.post("/infer")
def infer(request: Request):
    [y] = session.run(None, {"x": np.array(request.data, np.float32).reshape(request.shape)})
    return {"shape": y.shape, "data": y.ravel().tolist()}

one = socket.create_server(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([one])
"""


def convolutions(path: Path) -> None:
    """Write a network of a picture of 224 x 224: four convolutions, the mean, 1000 classes."""
    generator = np.random.default_rng(0)
    text, weights = "", []
    for k, (a, b) in enumerate(((3, 32), (32, 64), (64, 128), (128, 256))):
        array = (generator.standard_normal((b, a, 3, 3)) / np.sqrt(9 * a)).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{k}"))
        source = f"y{k - 1}" if k else "x"
        text += f"c{k} = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> ({source}, w{k}) y{k} = Relu(c{k}) "
    weights.append(numpy_helper.from_array(generator.standard_normal((256, 1000)).astype(np.float32) / 16, "w"))
    text += "m = GlobalAveragePool(y3) f = Flatten(m) y = MatMul(f, w)"
    head = '<ir_version: 10, opset_import: ["": 21]> m (float[1, 3, 224, 224] x) => (float[1, 1000] y)'
    model = onnx.parser.parse_model(f"{head} {{ {text} }}")
    model.graph.initializer.extend(weights)
    onnx.save(helper.make_model(model.graph, opset_imports=model.opset_import, ir_version=10), path)


@contextmanager
def fastapi(path: Path) -> Iterator[tuple[int, int]]:
    """FastAPI with a session of ONNX Runtime as a process: its port and its process number."""
    with subprocess.Popen([sys.executable, "-c", FASTAPI, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
        process.terminate()


def asked(folder: Path, address: str, body: object, clients: int, seconds: int) -> tuple[float, ...]:
    """Return the requests, how many a second, and the latencies that 50 and 99 of 100 have at most, in milliseconds."""
    (folder / "body").write_text(json.dumps(body))
    (folder / "wrk.lua").write_text(
        f'wrk.method = "POST"\nwrk.body = io.open("{folder / "body"}", "rb"):read("*all")\n'
        'wrk.headers["Content-Type"] = "application/json"\n'
    )
    wrk = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}", "--latency", "-s", folder / "wrk.lua", address]
    text = subprocess.run(wrk, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in text, text
    count = number(r"(\d+) requests in", text)
    latencies = (float(value) * MICROSECONDS[unit] / 1e3 for _, value, unit in LATENCY.findall(text)[:2])
    return count, count / number(r"requests in ([\d.]+)s", text), *latencies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    given = parser.parse_args()
    print("| numbers | clients | server | requests/s | p50, ms | p99, ms | processor ms a request |")
    print("|--|--|--|--|--|--|--|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        perceptron(folder / "mlp.onnx", (784, 512, 512, 10))
        convolutions(folder / "picture.onnx")
        for model, shape in (("mlp", [1, 784]), ("picture", [1, 3, 224, 224])):
            path = folder / f"{model}.onnx"
            aot.compile_model(path).export_model(path.with_suffix(".so"))
            numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32).ravel().tolist()
            tensor = {"name": "x", "datatype": "FP32", "shape": shape, "data": numbers}
            with serving("aot", path.with_suffix(".so"), 1, 1, 1) as ours, fastapi(path) as peer:
                ways = (
                    ("aot", ours, f"/v2/models/{model}/infer", {"inputs": [tensor]}),
                    ("FastAPI, ONNX Runtime", peer, "/infer", tensor),
                )
                for clients in given.clients:
                    for server, (port, process), way, body in ways:
                        address = f"http://127.0.0.1:{port}{way}"
                        asked(folder, address, body, clients, 1)
                        before = processor_seconds(process)
                        count, rate, half, most = asked(folder, address, body, clients, given.seconds)
                        spent = (processor_seconds(process) - before) / count * 1e3
                        figures = f"{rate:.1f} | {half:.2f} | {most:.2f} | {spent:.2f}"
                        print(f"| {len(numbers)} | {clients} | {server} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
