"""A server for minutes: right and changed requests by HTTP and gRPC, reloads, clients that leave, and what memory does.

python -m benchmarks.running.serving_soak --seconds 900 --rate 20 [--kill 60]     extras serve, test

Requests at `--rate` a second, of a model of any number of rows and a small language model, one in three changed at
random. `--kill SECONDS`: end the server by SIGKILL and start it again that often. Prints a line every tenth of the
time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx

import aot
from tests.fuzz.bodies import bodies
from tests.text import talking

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "model.xml"
NAMES = {"language": "talk", "infer": "digits", "input": "image", "shape": [1, 1, 8, 8], "data": [0.5] * 64}
NAMES |= {"output": "probabilities"}
INFER = "/inference.GRPCInferenceService/ModelInfer"
START_SECONDS = 60.0


@dataclass
class Soak:
    """A server, and what happened to it."""

    folder: Path
    port: int
    grpc_port: int
    codes: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        command = [sys.executable, "-m", "aot", "serve", str(self.folder), "--port", str(self.port), "--threads", "1"]
        command += ["--grpc-port", str(self.grpc_port), "--max-context", "60", "--max-batch", "8", "--poll", "5"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{self.port}/v2/health/ready").status_code == 200:
                    return
            time.sleep(0.1)
        self.faults.append("not ready after the start")

    def kill(self) -> None:
        """End the server at once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def facts(self) -> str:
        """Return megabytes, threads and descriptors of the server."""
        place = Path(f"/proc/{self.process.pid if self.process is not None else 0}")
        lines = (place / "status").read_text().splitlines()
        found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "Threads"))}
        return (
            f"{int(found['VmRSS']) >> 10} MB, {found['Threads']} threads, {len(os.listdir(place / 'fd'))} descriptors"
        )


def requests(soak: Soak, seed: int) -> Iterator[None]:
    """Send a request at each step."""
    chance, changed = random.Random(seed), bodies(seed, NAMES)
    client = httpx.Client(base_url=f"http://127.0.0.1:{soak.port}", timeout=30)
    channel = grpc.insecure_channel(f"127.0.0.1:{soak.grpc_port}")
    plain = {"name": "image", "datatype": "FP32", "shape": NAMES["shape"], "data": NAMES["data"]}
    whole = next(body for path, body in bodies(0, NAMES) if "infer" in path)
    while True:
        kind = chance.randrange(6)
        try:
            if kind < 2:
                path, body = next(changed)
                code = client.post(path, content=body).status_code
            elif kind == 2:
                code = client.post("/v2/models/digits/infer", json={"inputs": [plain]}).status_code
            elif kind == 3:
                asked = {"model": "talk", "prompt": "1+2=", "max_tokens": 8, "stream": chance.random() < 0.5}
                code = client.post("/v1/completions", json=asked).status_code
            elif kind == 4:
                code = _leave(soak.port, whole, chance)
            else:
                code = _by_grpc(channel, chance)
        except httpx.TransportError as error:
            code = type(error).__name__
        soak.codes[str(code)] += 1
        if str(code) in ("500", "UNKNOWN", "INTERNAL") or (kind in (2, 3) and code != 200):
            soak.faults.append(f"kind {kind}: {code}")
        yield


def _leave(port: int, body: bytes, chance: random.Random) -> str:
    """Send a part of a request and go."""
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as one:
        one.sendall((head + body)[: chance.randrange(len(head + body))])
    return "left"


def _by_grpc(channel: grpc.Channel, chance: random.Random) -> str:
    """Send a message whose bytes are changed; those that are no message end in the parser."""
    pb = __import__("tritonclient.grpc.service_pb2", fromlist=["ModelInferRequest"])
    message = pb.ModelInferRequest(model_name="digits", raw_input_contents=[bytes(256)])
    message.inputs.add(name="image", datatype="FP32", shape=[1, 1, 8, 8])
    data = bytearray(message.SerializeToString())
    for _ in range(chance.choice((0, 1, 2, 5))):
        data[chance.randrange(len(data) - 240)] = chance.randrange(256)
    try:
        channel.unary_unary(INFER)(bytes(data), timeout=30)
    except grpc.RpcError as error:
        wrong = error.details() or ""
        unread = "deserializ" in wrong.lower() or "parsing" in wrong.lower()
        return "no message" if unread else error.code().name
    return "OK"


def soak(seconds: float, rate: float, kill: float | None, seed: int) -> Soak:
    """Run a server and send it requests."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        aot.compile_model(DIGITS, shapes={"image": ("n", 1, 8, 8)}, dims={"n": (1, 64)}).export_model(
            folder / "digits.so"
        )
        shutil.move(talking.library(folder, row_lengths=True), folder / "talk.so")
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            run = Soak(folder, one.getsockname()[1], other.getsockname()[1])
        run.start()
        sent, begin, told, killed = requests(run, seed), time.monotonic(), 0, 0
        try:
            while (now := time.monotonic() - begin) < seconds:
                next(sent)
                if kill is not None and now > (killed + 1) * kill:
                    killed += 1
                    run.kill()
                    run.start()
                if now >= told * seconds / 10:
                    told += 1
                    print(f"{now:6.0f} s  {sum(run.codes.values()):7d} requests  {run.facts()}", flush=True)
                    shutil.copy(folder / "digits.so", folder / ".new")  # a reload
                    (folder / ".new").rename(folder / "digits.so")
                time.sleep(max(0.0, 1 / rate - (time.monotonic() - begin - now)))
        finally:
            run.kill()
        log = (folder / "log").read_text(errors="replace")
        run.faults += [line for line in log.splitlines() if " error " in line or "Traceback" in line]
    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("seconds", 900.0), ("rate", 20.0), ("kill", None)):
        parser.add_argument(f"--{option}", type=float, default=default)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = soak(given.seconds, given.rate, given.kill, given.seed)
    print(json.dumps(dict(sorted(found.codes.items()))))
    print(f"{len(found.faults)} faults", *found.faults[:20], sep="\n")
