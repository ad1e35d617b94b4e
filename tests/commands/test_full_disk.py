"""A disk without room for what a command writes: the file is named with the next step, and nothing of it is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import aot

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "compile m.onnx -o new.so": "new.so",
    "compile m.onnx -o new.so --target x86-64-v2,v3": "new.so",
    "compile m.onnx -o new.o": "new.o",
    "compile m.onnx -o new.o --save-temps texts": "texts/40-code.ll",
    "convert m.onnx -o new.xml": "new.bin",
    "report m.so -o new.html --seconds 0": "new.html",
    "bench m.so --trace new.json --seconds 0": "new.json",
}
SCRIPT = """import json, resource, sys
from aot import cli
from typer.testing import CliRunner

resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
ends = [CliRunner().invoke(cli.app, command.split()) for command in json.loads(sys.argv[1])]
print(json.dumps([(end.exit_code, end.stderr) for end in ends]))"""


@pytest.mark.slow
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> m (float[1,32] x) => (float[1,32] y) { y = MatMul(x, w) }'
    )
    made.graph.initializer.append(from_array(np.eye(32, dtype=np.float32), "w"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    aot.compile_model(tmp_path / "m.onnx", output=tmp_path / "m.so")
    before = {path.name for path in tmp_path.iterdir()}
    # -B: compiled modules would be cut, too
    words = [sys.executable, "-B", "-c", SCRIPT, json.dumps(list(COMMANDS))]
    env = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path, env=env)
    for (command, file), (code, errors) in zip(COMMANDS.items(), json.loads(done.stdout), strict=True):
        assert code == 2, command
        assert f"error: {file}: file too large\nnext: free space there" in errors, (command, errors)
    assert {path.name for path in tmp_path.iterdir()} - {"texts"} == before
