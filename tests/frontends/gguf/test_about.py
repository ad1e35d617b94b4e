"""`aot info` of GGUF: what lies in files that cannot be compiled."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot.cli import app
from tests.frontends.gguf.files import write
from tests.frontends.gguf.networks import Network

TOKENS = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b", "ab"], "tokenizer.ggml.merges": ["a b"]}
FACTS = {"general.name": "small", "falcon.block_count": 2, "tokenizer.chat_template": "{{ x }}\n" * 50}


def info(path: Path, *options: str) -> str:
    found = CliRunner().invoke(app, ["info", str(path), *options])
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.mark.parametrize("architecture", ["falcon", "mamba", "bert", "clip", "whisper", "deepseek2", "x" * 500])
def test_any_architecture(architecture: str, tmp_path: Path) -> None:
    tensors = {"token_embd.weight": ("F32", (3, 4), bytes(48)), "x": ("Q8_0", (2, 32), bytes(68))}
    found = info(write(tmp_path / "m.gguf", {"general.architecture": architecture, **FACTS, **TOKENS}, tensors))
    for line in (
        f"m.gguf: GGUF, architecture {architecture[:100]}, 2 tensors",
        "  about     name: small",
        "  sizes     falcon.block_count: 2",
        "  tokenizer tokenizer.ggml.tokens: ['a', 'b', 'ab']",
        "  weights   64 of Q8_0, 12 of F32",
    ):
        assert line in found.splitlines()
    assert "compiled  no: " in found and "can be read, got" in found and "400 characters" in found


def test_a_vocabulary_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "v.gguf", {"general.architecture": "llama", "llama.block_count": 32, **TOKENS}, {})
    assert "compiled  no: a vocabulary without a network" in info(path)
    found = json.loads(info(path, "--json"))
    assert (found["architecture"], found["tensors"], found["refused"]) == ("llama", 0, None)
    assert found["sizes"] == {"llama.block_count": 32}


def test_formats_that_cannot_be_read(tmp_path: Path) -> None:
    """IQ2_S is number 22 of ggml's types, and 99 is none."""
    data = write(
        tmp_path / "m.gguf", {"general.architecture": "llama"}, {"x": ("F32", (8, 256), bytes(8192))}
    ).read_bytes()
    at = data.index(struct.pack("<IQQ", 2, 256, 8)) + 20
    for kind, name in ((22, "IQ2_S"), (99, "type 99")):
        (tmp_path / "n.gguf").write_bytes(data[:at] + struct.pack("<I", kind) + data[at + 4 :])
        assert f"weights   2048 of {name}" in info(tmp_path / "n.gguf")


def test_a_network_that_can_be_compiled_is_described_behind_its_file(tmp_path: Path) -> None:
    path = Network("qwen2", "Q4_0").write(tmp_path / "m.gguf")
    lines = info(path).splitlines()
    assert lines[0] == "m.gguf: GGUF, architecture qwen2, 14 tensors" and "compiled  no" not in "".join(lines)
    assert lines.index("  weights   409600 of Q4_0, 1280 of F32") < lines.index(
        "  input   input_ids: i64[batch,length]"
    )
    found = json.loads(info(path, "--json"))
    assert found["gguf"]["elements"]["Q4_0"] == 409600 and found["inputs"]


def test_damaged_files_are_corrupt(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", {"general.architecture": "falcon", **TOKENS}, {})
    path.write_bytes(path.read_bytes()[:60])
    assert CliRunner().invoke(app, ["info", str(path)]).exit_code == 4
