"""The server under load: `wrk` asks it for inferences by compiled code, and by ONNX Runtime behind the same server.

python -m benchmarks.running.serving load --seconds 8 --connections 16     needs wrk; extras serve, onnx, bench
python -m benchmarks.running.serving memory --models 200

Tables of rows a second, latencies, and the server's processor time a request, which a busy machine changes least.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import aot
from aot.runtime.model import CompiledModel
from aot.serve.repository import Repository
from aot.serve.served_model import ServedModel
from aot.serve.server import Server
from aot.serve.settings import Settings

WIDTHS = {"mlp_256_512_10": (256, 512, 10), "mlp_1024_2048_2048_1000": (1024, 2048, 2048, 1000)}
LATENCY = re.compile(r"(50|99)%\s+([\d.]+)(us|ms|s)")
MICROSECONDS = {"us": 1.0, "ms": 1e3, "s": 1e6}


def perceptron(path: Path, widths: tuple[int, ...], seed: int = 0) -> None:
    """Write a multilayer perceptron with any number of rows."""
    generator = np.random.default_rng(seed)
    nodes, weights, name = [], [], "x"
    for k, (a, b) in enumerate(pairwise(widths)):
        array = (generator.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{k}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{k}"], [f"m{k}"]))
        name = f"y{k}"
        nodes.append(helper.make_node("Relu", [f"m{k}"], [name]))
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", w]) for n, w in (("x", widths[0]), (name, widths[-1]))
    ]
    graph = helper.make_graph(nodes, path.stem, ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


class Results(list[Any]):
    """Results by index, and by name as a dictionary."""

    def __init__(self, names: list[str], arrays: list[Any]) -> None:
        super().__init__(arrays)
        self._names = names

    def to_dict(self) -> dict[str, Any]:
        return dict(zip(self._names, self, strict=True))


class OnnxRuntime:
    """A session that the server takes for a compiled model; `like` describes its inputs and outputs."""

    def __init__(self, path: Path, like: CompiledModel, threads: int) -> None:
        onnxruntime: Any = import_module("onnxruntime")  # takes memory that the server of ours must not show
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.manifest, self.inputs, self.outputs = like.manifest, like.inputs, like.outputs
        self.names = [output.name for output in self.session.get_outputs()]

    def __call__(self, inputs: dict[str, Any]) -> Any:
        results = self.session.run(self.names, inputs)
        return Results(self.names, results)


class OnnxRuntimeRepository(Repository):
    """Sessions of the .onnx beside each library."""

    def _open(self, name: str, version: str, path: Path) -> ServedModel:
        like = aot.runtime.load(path, threads=1)
        session: Any = OnnxRuntime(path.with_suffix(".onnx"), like, self.settings.threads or 1)
        return ServedModel(session, name, version, path, self.settings, self._executor, self.metrics)


def serve(engine: str, sources: list[str], max_batch: int, threads: int, jobs: int) -> None:
    """Run a server, and print its port."""
    settings = Settings(port=0, max_batch=max_batch, threads=threads, jobs=jobs)
    server = Server(sources, settings)
    if engine == "onnxruntime":
        server.repository = OnnxRuntimeRepository(sources, settings)
    server.run(lambda: print(server.port, flush=True))


@contextmanager
def serving(*options: object) -> Iterator[tuple[int, int]]:
    """A server as a process: its port and its process number."""
    command = [sys.executable, "-m", "benchmarks.running.serving", "serve", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
        process.terminate()


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> dict[str, int]:
    """Bytes of memory of a process: all, and those that no file backs."""
    text = Path(f"/proc/{process}/status").read_text()
    return {key: int(number(rf"{key}:\s+(\d+)", text)) << 10 for key in ("VmRSS", "RssAnon")}


def script(folder: Path, model: str, rows: int, width: int) -> tuple[Path, int]:
    """Write wrk's script: one request, with its tensor as raw bytes, again and again; return its JSON's length too."""
    data = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32).tobytes()
    tensor = {"name": "x", "shape": [rows, width], "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    (folder / "body").write_bytes(head + data)
    path = folder / "wrk.lua"
    path.write_text(
        f'wrk.method = "POST"\nlocal f = io.open("{folder / "body"}", "rb")\nwrk.body = f:read("*all")\n'
        f'wrk.headers["Inference-Header-Content-Length"] = "{len(head)}"\nwrk.path = "/v2/models/{model}/infer"\n'
    )
    return path, len(head)


def number(pattern: str, text: str) -> float:
    """Return the number that the pattern's group matches in `text`."""
    match = re.search(pattern, text)
    assert match is not None, text
    return float(match[1])


def load(seconds: int, connections: int, rows: int, threads: int) -> None:
    """Print a line for each model, engine and size of batches."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| model | engine | rows a batch, at most | rows/s | p50, ms | p99, ms | processor ms a request |")
        print("|--|--|--|--|--|--|--|")
        for model, widths in WIDTHS.items():
            perceptron(folder / f"{model}.onnx", widths)
            aot.compile_model(folder / f"{model}.onnx").export_model(folder / f"{model}.so")
            lua, _ = script(folder, model, rows, widths[0])
            for engine, batch in (("aot", 1), ("aot", 32), ("onnxruntime", 1), ("onnxruntime", 32)):
                with serving(engine, folder / f"{model}.so", batch, threads, threads) as (port, process):
                    address = f"http://127.0.0.1:{port}"
                    wrk = ["wrk", "-t1", f"-c{connections}", "--latency", "-s", str(lua), address]
                    subprocess.run([*wrk, "-d2"], check=True, capture_output=True)
                    before = processor_seconds(process)
                    text = subprocess.run([*wrk, f"-d{seconds}"], check=True, capture_output=True, text=True).stdout
                    spent = (processor_seconds(process) - before) / number(r"(\d+) requests in", text) * 1e3
                assert "Non-2xx" not in text, text
                rate = number(r"Requests/sec:\s+([\d.]+)", text) * rows
                half, most = (float(v) * MICROSECONDS[u] / 1e3 for _, v, u in LATENCY.findall(text)[:2])
                print(f"| {model} | {engine} | {batch} | {rate:.0f} | {half:.2f} | {most:.2f} | {spent:.3f} |")


def memory(models: int) -> None:
    """Print what a process takes with many models, before and after each has run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        perceptron(folder / "m.onnx", (256, 512, 512, 10))
        aot.compile_model(folder / "m.onnx").export_model(folder / "m.so")
        (folder / "all").mkdir()
        for k in range(models):
            shutil.copy(folder / "m.so", folder / "all" / f"m{k}.so")
            shutil.copy(folder / "m.onnx", folder / "all" / f"m{k}.onnx")
        _, length = script(folder, "m0", 1, 256)
        body, headers = (folder / "body").read_bytes(), {"inference-header-content-length": str(length)}
        size = (folder / "m.so").stat().st_size / 1e6
        print(f"{models} models of {size:.2f} MB; MB before and after an inference of each")
        for engine in ("aot", "onnxruntime"):
            for count in (0, models):
                begin = time.monotonic()
                with serving(engine, folder / "all" if count else folder / "m.so", 1, 2, 2) as (port, process):
                    ready, idle = time.monotonic() - begin, resident(process)
                    with httpx.Client() as client:
                        for k in range(count):
                            url = f"http://127.0.0.1:{port}/v2/models/m{k}/infer"
                            client.post(url, content=body, headers=headers).raise_for_status()
                    used = resident(process)
                sizes = ", ".join(f"{k} {idle[k] / 1e6:.0f} -> {used[k] / 1e6:.0f}" for k in idle)
                print(f"{engine}, {count or 1} models: ready in {ready:.2f} s; {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("load")
    for option, default in (("seconds", 8), ("connections", 16), ("rows", 1), ("threads", 1)):
        one.add_argument(f"--{option}", type=int, default=default)
    many = commands.add_parser("memory")
    many.add_argument("--models", type=int, default=200)
    inner = commands.add_parser("serve")
    for option, kind in (("engine", str), ("source", str), ("max_batch", int), ("threads", int), ("jobs", int)):
        inner.add_argument(option, type=kind)
    given = parser.parse_args()
    if given.command == "load":
        load(given.seconds, given.connections, given.rows, given.threads)
    elif given.command == "memory":
        memory(given.models)
    else:
        serve(given.engine, [given.source], given.max_batch, given.threads, given.jobs)


if __name__ == "__main__":
    main()
