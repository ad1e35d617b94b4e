"""A faster precision is named where there is one on the target; all of them are measured beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import cli
from aot.codegen.ir.loops import Var
from aot.compilation.driver import stages
from aot.compilation.hints import Options, faster, faster_lines, flags
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import numpy_dtype
from aot.ir.values.small_weights import plain_products, weight_bits
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.tools.overview import read, text
from aot.writers.openvino import write

BF16, FAST, INT8 = {"precision": "bf16"}, {"precision": "bf16", "fast_math": True}, {"activations": "int8"}


def network(kind: str) -> Graph:
    """Return a product: of `plain` weights, of weights in `i8` or `i4` with scales, with `rounded` data; or none."""
    graph, rng = Graph(kind), np.random.default_rng(0)
    b, x = Builder(graph), graph.add(Parameter(DType.F32, (Var("n", None, 1), 64)), name="x").out_port(0)
    if kind == "no product":
        graph.add(Result(), b.Relu(x), name="y")
        return graph
    dtype = DType.I4 if kind == "i4" else DType.I8
    most = 7 if dtype is DType.I4 else 127
    numbers = rng.integers(-most, most + 1, (32, 64)).astype(numpy_dtype(dtype))
    if kind == "plain":
        w = b.const(rng.standard_normal((32, 64)).astype(np.float32), DType.F32)
    else:
        w = b.Convert(b.const(numbers, dtype), destination_type=DType.F32)
        w = b.Multiply(w, b.const(np.full((32, 1), 0.01, np.float32), DType.F32))
    if kind == "rounded":
        low, high = (b.const(np.float32(n), DType.F32) for n in (-4, 4))
        x = b.FakeQuantize(x, low, high, low, high, levels=256)
    graph.add(Result(), b.MatMul(x, w, transpose_a=False, transpose_b=True), name="y")
    return graph


@pytest.mark.parametrize(
    ("kind", "target", "found"),
    [
        ("plain", "x86-64-v4-amx", BF16),
        ("plain", "x86-64-v4-bf16", FAST),
        ("plain", "x86-64-v4", {}),
        ("plain", "aarch64", {}),
        ("i8", "x86-64-v4-bf16", INT8),
        ("i4", "x86-64-v3", INT8),
        ("i8", "aarch64", {}),
        ("rounded", "x86-64-v4-bf16", {}),
        ("no product", "x86-64-v4-amx", {}),
        ("plain", "x86-64-v3,v4-bf16", {}),
    ],
)
def test_a_faster_precision_is_named_where_there_is_one(kind: str, target: str, found: Options) -> None:
    made = stages(network(kind), CompileOptions(target=target))
    assert faster(made) == found
    assert len(faster_lines(made, Path("m.xml"))) == bool(found)


@pytest.mark.parametrize("asked", [{"precision": "bf16"}, {"activations": "int8"}, {"precision": "f32,y=bf16"}])
def test_who_has_chosen_is_told_nothing(asked: dict[str, str]) -> None:
    assert faster(stages(network("i8"), CompileOptions(target="x86-64-v4-bf16", **asked))) == {}  # type: ignore[arg-type]


def test_options_as_flags() -> None:
    assert [flags(o) for o in (BF16, FAST, INT8)] == [
        "--precision bf16",
        "--precision bf16 --fast-math",
        "--activations int8",
    ]


@pytest.mark.parametrize(("kind", "bits", "plain"), [("plain", None, 0), ("i8", 8, 1), ("i4", 4, 1), ("rounded", 8, 0)])
def test_info_says_how_many_products_have_small_weights_alone(
    kind: str, bits: int | None, plain: int, tmp_path: Path
) -> None:
    write(network(kind), tmp_path / "m.xml")
    graph, counts = read(tmp_path / "m.xml")
    assert (weight_bits(graph), plain_products(graph)) == (bits, plain)
    assert ("--activations int8" in text(graph, counts)) == bool(plain)


def test_precisions_are_measured_beside_each_other(tmp_path: Path) -> None:
    write(network("i8"), tmp_path / "m.xml")
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32))
    command = ["bench", str(tmp_path / "m.xml"), str(tmp_path / "x.npy"), "--precisions", "--seconds", "0.1"]
    shown = CliRunner().invoke(cli.app, command)
    assert shown.exit_code == 0, shown.output
    head, first, *others = shown.output.splitlines()
    assert head.split() == ["ms", "of", "f32", "size", "error"] and first.startswith("f32 ")
    told = CliRunner().invoke(cli.app, [*command, "--json"])
    rows = json.loads(told.stdout)["precisions"]
    assert [row["flags"].split(" --fast")[0] for row in rows][:3] == ["", "--precision bf16", "--precision f16"]
    assert len(rows) == len(others) + 1 and all(row["seconds"] > 0 and row["bytes"] > 0 for row in rows)
    assert rows[0]["error"] == 0 and all(0 <= row["error"] < 0.05 for row in rows[1:])


def test_precisions_are_of_models(tmp_path: Path) -> None:
    stages(network("plain"), CompileOptions()).built.write_shared(tmp_path / "m.so")
    shown = CliRunner().invoke(cli.app, ["bench", str(tmp_path / "m.so"), "--precisions"])
    assert shown.exit_code == 2 and "--precisions compiles a model, got the library" in shown.stderr
