"""Inputs that `aot bench` makes up have sizes that the model takes, or the error says which option to give."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from aot import cli
from aot.compilation.search.examples import example_inputs
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Dim, RuleInfo, TensorInfo


def info(name: str, *shape: int | str | Dim, dtype: DType = DType.F32) -> TensorInfo:
    return TensorInfo(name, (name,), dtype, tuple(Dim(d) if isinstance(d, str) else d for d in shape), 64)


def shapes(*infos: TensorInfo, rules: tuple[tuple[str, str], ...] = (), **given: object) -> list[tuple[int, ...]]:
    found = example_inputs(infos, [RuleInfo(a, b, f"{a} is {b}") for a, b in rules], **given)  # type: ignore[arg-type]
    return [found[i.name].shape for i in infos]


@pytest.mark.parametrize(
    ("infos", "rules", "expected"),
    [
        ((info("x", "n", 3),), (), [(1, 3)]),
        ((info("x", Dim("n", 4, 9)),), (), [(4,)]),
        ((info("x", "n", 3, "h", "h"),), (("min(h - 6, 1)", "1"),), [(7, 3, 7, 7)]),
        ((info("x", "a"), info("y", "b")), (("a", "b * 2"),), [(2,), (1,)]),
        ((info("x", "a"), info("y", "b")), (("a + b", "40"),), [(20,), (20,)]),
        ((info("x", "x.d0", 4), info("y", 4, "y.d1")), (("x.d0 % 8", "0"),), [(8, 4), (4, 8)]),
        ((info("x", "a"),), (("v3_0", "a"),), [(1,)]),  # a size that only an inference computes
    ],
)
def test_sizes_are_the_smallest_that_keep_the_rules(
    infos: tuple[TensorInfo, ...], rules: tuple[tuple[str, str], ...], expected: list[tuple[int, ...]]
) -> None:
    assert shapes(*infos, rules=rules) == expected


def test_shapes_and_dims_say_sizes() -> None:
    x, y = info("x", "n", 3, "h"), info("y", "n", "m")
    assert shapes(x, y, shapes=[("x", (2, 3, "?"))], dims=[("m", 7, 7)]) == [(2, 3, 1), (2, 7)]
    assert shapes(x, y, dims=[("n", 5, None)]) == [(5, 3, 1), (5, 1)]
    assert shapes(x, shapes=[("", (2, 3, "?"))]) == [(2, 3, 1)]  # the only input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dims": [("k", 1, 1)]}, "dim: must be one of n, got k"),
        ({"shapes": [("z", (1, 2))]}, "shape: must be an input and its dimensions, of x: f32[n,4], got z=1,2"),
        ({"shapes": [("x", (1, 2, 3))]}, "got x=1,2,3"),
        ({"shapes": [("x", (1, 5))]}, "shape: input 'x' is f32[n,4], got 1,5"),
        ({"rules": (("n * 0", "1"),)}, "give --shape INPUT=SHAPE, --dim NAME=SIZE or arrays, got n = 1"),
    ],
)
def test_mismatched_examples_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        shapes(info("x", "n", 4), **given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x[n, 2, h] through a window of 5: sizes below 5 are refused."""
    graph = helper.make_graph(
        [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[5])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, "h"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path_factory.mktemp("examples") / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)]).SerializeToString())
    library = path.with_suffix(".so")
    assert CliRunner().invoke(cli.app, ["compile", str(path), "-o", str(library)]).exit_code == 0
    return library


@pytest.mark.parametrize("options", [[], ["--dim", "h=9"], ["--shape", "x=3,2,8"]])
@pytest.mark.parametrize("suffix", [".so", ".onnx"])
def test_bench_makes_up_sizes_that_the_model_takes(pooled: Path, suffix: str, options: list[str]) -> None:
    command = ["bench", str(pooled.with_suffix(suffix)), "--seconds", "0.01", *options]
    result = CliRunner().invoke(cli.app, command)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("suffix", [".so", ".onnx"])
def test_run_takes_sizes_in_place_of_arrays(pooled: Path, suffix: str) -> None:
    model = str(pooled.with_suffix(suffix))
    result = CliRunner().invoke(cli.app, ["run", model, "--shape", "x=3,2,8"])
    assert "y: f32[3, 2, 4]" in result.output or "[3,2,4]" in result.output.replace(" ", ""), result.output
    assert CliRunner().invoke(cli.app, ["run", model]).exit_code == 2
    refused = CliRunner().invoke(cli.app, ["run", model, "--shape", "x=3,2,4"])
    assert refused.exit_code == {".so": 2, ".onnx": 4}[suffix], refused.output


def test_noise_is_the_same_each_time() -> None:
    x = info("x", 3)
    np.testing.assert_array_equal(example_inputs([x])["x"], example_inputs([x])["x"])
