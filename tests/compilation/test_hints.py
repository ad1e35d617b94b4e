"""A faster precision is named where there is one on the target; all of them are measured beside each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

from aot import cli
from aot.codegen.ir.loops import Var
from aot.compilation.driver import stages
from aot.compilation.hints import Options, faster, faster_lines, flags
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Dim, numpy_dtype
from aot.ir.values.small_weights import rounded_products, weight_bits
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.tools.overview import read, text
from aot.writers.openvino import write
from benchmarks.language.random_gguf import Shape, write_random
from tests.lowering.quantized import HAS

LARGE = 2048  # outputs with which weights are large
ROWS = Var("n", None, 1)
BF16, FAST, INT8 = {"precision": "bf16"}, {"precision": "bf16", "fast_math": True}, {"activations": "int8"}


def network(kind: str, outputs: int = 32, rows: Dim = ROWS) -> Graph:
    """Return a product, or none: of `plain` weights, of weights in `i8` or `i4` with scales, with `rounded` data.

    `i32`: numbers of 8 bits that are converted by way of i32.
    """
    graph, rng = Graph(kind), np.random.default_rng(0)
    b, x = Builder(graph), graph.add(Parameter(DType.F32, (rows, 64)), name="x").out_port(0)
    if kind == "no product":
        graph.add(Result(), b.Relu(x), name="y")
        return graph
    dtype = DType.I4 if kind == "i4" else DType.I8
    most = 7 if dtype is DType.I4 else 127
    numbers = rng.integers(-most, most + 1, (outputs, 64)).astype(numpy_dtype(dtype))
    if kind == "plain":
        w = b.const(rng.standard_normal((outputs, 64)).astype(np.float32), DType.F32)
    else:
        w = b.const(numbers, dtype)
        w = b.Convert(w, destination_type=DType.I32) if kind == "i32" else w  # as of DequantizeLinear
        w = b.Convert(w, destination_type=DType.F32)
        w = b.Multiply(w, b.const(np.full((outputs, 1), 0.01, np.float32), DType.F32))
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
        ("large i8", "x86-64-v4-bf16", {}),
        ("rounded", "x86-64-v4-bf16", {}),
        ("no product", "x86-64-v4-amx", {}),
        ("plain", "x86-64-v3,v4-bf16", {}),
    ],
)
def test_a_faster_precision_is_named_where_there_is_one(kind: str, target: str, found: Options) -> None:
    made = stages(network(kind.removeprefix("large "), LARGE if "large" in kind else 32), CompileOptions(target=target))
    assert faster(made) == found
    assert len(faster_lines(made, Path("m.xml"))) == bool(found)


@pytest.mark.parametrize(("rows", "lines"), [(64, 0), (64_000, 1)])
def test_small_products_are_not_worth_a_line(rows: int, lines: int) -> None:
    made = stages(network("plain", 32, rows), CompileOptions(target="x86-64-v4-amx"))
    assert len(faster_lines(made, Path("m.xml"))) == lines


@pytest.mark.parametrize(
    ("kind", "target", "given", "decided"),
    [
        ("BF16", "x86-64-v4-amx", {}, BF16),
        ("F16", "x86-64-v4-amx", {}, BF16),
        ("BF16", "x86-64-v4-bf16", {}, FAST),
        ("BF16", "aarch64-v8.6", {}, BF16),
        ("BF16", "x86-64-v4", {}, {}),
        ("BF16", "x86-64-v3,v4-amx", {}, {}),
        ("F32", "x86-64-v4-amx", {}, {}),
        ("Q8_0", "x86-64-v4-amx", {}, INT8),
        ("BF16", "x86-64-v4-amx", {"precision": "f32"}, {}),
        ("BF16", "x86-64-v4-amx", {"activations": "f32"}, {}),
        ("BF16", "x86-64-v4-amx", {"weights": "int8"}, INT8),
    ],
)
def test_decoders_with_weights_of_16_bits_compute_in_bf16_where_that_is_faster(
    tmp_path: Path, kind: str, target: str, given: Options, decided: Options
) -> None:
    file = write_random(tmp_path / "m.gguf", Shape("llama", 1, 256, 512, 4, 2, 64, 512), kind)
    made = stages(file, replace(CompileOptions(target=target), **given))
    assert made.decided == replace(made.options, **decided)
    found = read(file)
    assert ("--precision f32" in text(*found)) == (kind in ("BF16", "F16"))


@pytest.mark.parametrize(
    "asked",
    [{"precision": "bf16"}, {"activations": "int8"}, {"activations": "f32"}, {"precision": "f32,y=bf16"}],
)
def test_chosen_options_give_no_hints(asked: dict[str, str]) -> None:
    assert faster(stages(network("i8"), CompileOptions(target="x86-64-v4-bf16", **asked))) == {}  # type: ignore[arg-type]


def test_options_as_flags() -> None:
    assert [flags(o) for o in (BF16, FAST, INT8)] == [
        "--precision bf16",
        "--precision bf16 --fast-math",
        "--activations int8",
    ]


@pytest.mark.parametrize(
    ("kind", "bits", "count"),
    [("plain", None, 0), ("i8", 8, 1), ("i4", 4, 1), ("small i8", 8, 0), ("rounded", 8, 0), ("i32", 8, 0)],
)
def test_products_of_large_small_weights_round_their_data(
    kind: str, bits: int | None, count: int, tmp_path: Path
) -> None:
    """`aot info` says so of the file, and the library records it."""
    write(network(kind.removeprefix("small "), 32 if "small" in kind else LARGE), tmp_path / "m.xml")
    graph, counts = read(tmp_path / "m.xml")
    assert (weight_bits(graph), rounded_products(graph)) == (bits, count)
    assert ("--activations f32" in text(graph, counts)) == bool(count)
    assert ("--activations int8" in text(graph, counts)) == ("small" in kind)
    made = stages(tmp_path / "m.xml", CompileOptions(level=None))
    assert cast("dict[str, object]", made.built.manifest["options"]).get("activations") == ("int8" if count else None)
    assert made.groups.count("dots=") == HAS * count


def test_versions_and_levels_round_like_the_whole_library() -> None:
    options = CompileOptions("x86-64-v2,v4", specialise=(("n", (1,)),), dims=(("n", 1, 9),), level=None)
    made = stages(network("i8", LARGE), options)
    assert made.groups.count("dots=") == 2
    assert cast("dict[str, object]", made.built.manifest["options"])["activations"] == "int8"


@pytest.mark.parametrize("asked", [{"activations": "f32"}, {"precision": "bf16"}])
def test_chosen_types_of_data_are_kept(asked: dict[str, str]) -> None:
    made = stages(network("i8", LARGE), CompileOptions("x86-64-v4", level=None, **asked))  # type: ignore[arg-type]
    assert made.decided == made.options and "dots=" not in made.groups


@pytest.mark.parametrize(("outputs", "first"), [(32, ""), (LARGE, "--activations f32")])
def test_precisions_are_measured_beside_each_other(outputs: int, first: str, tmp_path: Path) -> None:
    write(network("i8", outputs), tmp_path / "m.xml")
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32))
    command = ["bench", str(tmp_path / "m.xml"), str(tmp_path / "x.npy"), "--precisions", "--seconds", "0.1"]
    shown = CliRunner().invoke(cli.app, command)
    assert shown.exit_code == 0, shown.output
    head, begin, *others = shown.output.splitlines()
    assert head.split() == ["ms", "of", "f32", "size", "error"] and begin.startswith(f"{first or 'f32'} ")
    told = CliRunner().invoke(cli.app, [*command, "--json"])
    rows = json.loads(told.stdout)["precisions"]
    assert [row["flags"].split(" --fast")[0] for row in rows][:3] == [first, "--precision bf16", "--precision f16"]
    assert len(rows) == len(others) + 1 and all(row["seconds"] > 0 and row["bytes"] > 0 for row in rows)
    assert rows[0]["error"] == 0 and all(0 <= row["error"] < 0.05 for row in rows[1:])


def test_precisions_are_of_models(tmp_path: Path) -> None:
    stages(network("plain"), CompileOptions()).built.write_shared(tmp_path / "m.so")
    shown = CliRunner().invoke(cli.app, ["bench", str(tmp_path / "m.so"), "--precisions"])
    assert shown.exit_code == 2 and "--precisions needs a model to compile, got the library" in shown.stderr
