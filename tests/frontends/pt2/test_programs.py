"""Exported modules give what PyTorch gives, one inference after the other: `make_programs.py` wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aot
from aot.compilation.driver import stages
from aot.frontends.pt2.graph.aliases import functional
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError, UsageError
from aot.tools import overview
from tests.frontends.onnx.models import run
from tests.frontends.pt2.test_operations import array, assert_close, contents, saved
from tests.lowering.quantized import HAS

FILE = Path(__file__).parent / "programs.zip"
CASES = {case["name"]: case for case in contents(FILE)[1]}
LOOSE = {"bfloat16": 1.6e-2, "float16": 2e-3}


def compiled(name: str, folder: Path) -> Any:
    return aot.compile_model(saved(CASES[name]["program"], contents(FILE)[0], folder))


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith("_core")])
def test_decomposed_program_gives_what_pytorch_gives(name: str, tmp_path: Path) -> None:
    """The first inference, by the references of the opset."""
    data, ran = contents(FILE)[0], CASES[name]["runs"][0]
    found = run(saved(CASES[name]["program"], data, tmp_path), *(array(e, data) for e in ran["inputs"]))
    for value, entry in zip(found, ran["outputs"], strict=True):
        assert_close(np.asarray(value), array(entry, data), entry[0], LOOSE.get(entry[0], 1e-5))


@pytest.mark.parametrize("name", [n for n in CASES if not n.endswith("_core")])
def test_program_gives_what_pytorch_gives(name: str, tmp_path: Path) -> None:
    """Operations in place, caches, branches, loops, sizes that vary."""
    model, data = compiled(name, tmp_path), contents(FILE)[0]
    for ran in CASES[name]["runs"]:
        found = model(*(array(e, data) for e in ran["inputs"]))
        assert len(model.outputs) == len(ran["outputs"])
        for k, entry in enumerate(ran["outputs"]):
            wanted = array(entry, data)
            value = np.asarray(found[k])
            value = value.view(wanted.dtype) if entry[0] == "bfloat16" else value
            assert_close(value, wanted, entry[0], LOOSE.get(entry[0], 1e-5))


@pytest.mark.skipif(not HAS, reason="the processor sums no products of bytes")
@pytest.mark.parametrize("name", ["quantised", "quantised_by_range"])
def test_quantized_programs_sum_integers(name: str, tmp_path: Path) -> None:
    path = saved(CASES[name]["program"], contents(FILE)[0], tmp_path)
    assert stages(path, CompileOptions(level=None)).groups.count("dots=") == 1


def test_associative_scan_gives_what_its_steps_give(tmp_path: Path) -> None:
    """PyTorch exports one for CUDA alone: made of a map whose body is a * 2 + b, here of the sum so far and a row."""
    case, data = CASES["map"], contents(FILE)[0]
    program = json.loads(json.dumps(case["program"]["program"]))
    node = program["graph_module"]["graph"]["nodes"][0]
    node["target"] = node["target"].replace("map_impl", "associative_scan")
    node["inputs"][2]["arg"] = {"as_tensors": []}
    x, y = (array(e, data) for e in case["runs"][0]["inputs"])
    wanted = [x[0]]
    for row in x[1:]:
        wanted.append(wanted[-1] * 2 + row)
    model = aot.compile_model(saved(case["program"] | {"program": program}, data, tmp_path))
    np.testing.assert_allclose(model(x, y)[0], np.stack(wanted), rtol=1e-6)


def test_unknown_operation_with_a_sub_graph_is_named(tmp_path: Path) -> None:
    case = CASES["map"]["program"]
    text = json.dumps(case["program"]).replace("map_impl", "flex_attention")
    with pytest.raises(
        UnsupportedError, match=r"flex_attention in .*: there is no conversion for it, an operation with"
    ):
        aot.compile_model(saved(case | {"program": json.loads(text)}, contents(FILE)[0], tmp_path))


@pytest.mark.parametrize(("first", "second"), [(5, 7), (1, 8), (5, 66)])
def test_size_that_no_symbol_gives_is_refused(first: int, second: int, tmp_path: Path) -> None:
    """`2 h` is even, and at most twice the greatest h."""
    with pytest.raises(UsageError):
        compiled("derived", tmp_path)(np.zeros((2, first), np.float32), np.zeros((2, second), np.float32))


def test_names_are_those_of_forward(tmp_path: Path) -> None:
    model = compiled("nested", tmp_path)
    assert [t.name for t in model.inputs] == ["image", "extra.p", "extra.q.0"]
    assert [t.name for t in model.outputs] == ["probs", "list.0", "list.1", "n"]


def test_input_that_is_written_to_is_an_output_too(tmp_path: Path) -> None:
    assert [t.name for t in compiled("written", tmp_path).outputs] == ["output", "x.written"]


def test_broken_assertion_names_the_condition(tmp_path: Path) -> None:
    model = compiled("item", tmp_path)
    with pytest.raises(UsageError, match="u0 <= 4"):
        model(np.zeros((5, 3), np.float32), np.array(5))


def test_overview_has_the_ranges_of_sizes(tmp_path: Path) -> None:
    graph, counts = overview.read(saved(CASES["grow"]["program"], contents(FILE)[0], tmp_path))
    assert "  size    s77: 2 to 64" in overview.text(graph, counts).splitlines()
    assert overview.facts(graph, counts)["sizes"] == {"s77": {"min": 2, "max": 64}}


def test_size_beyond_its_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        compiled("grow", tmp_path)(np.zeros((65, 4), np.float32))


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(("name", "kind"), [("conv_bf16", DType.BF16), ("attention_f16", DType.F16)])
def test_short_floats_keep_their_types_whatever_the_precision(
    name: str, kind: DType, precision: str, tmp_path: Path
) -> None:
    """Inputs, outputs and results are those of PyTorch: the option rounds products of f32 only."""
    data, ran = contents(FILE)[0], CASES[name]["runs"][0]
    path = saved(CASES[name]["program"], data, tmp_path)
    model = aot.compile_model(path, precision=precision)
    assert [t.dtype for t in (*model.inputs, *model.outputs)] == [kind, kind]
    entry = ran["outputs"][0]
    wanted = array(entry, data)
    found = np.asarray(model(*(array(e, data) for e in ran["inputs"]))[0]).view(wanted.dtype)
    assert_close(found, wanted, entry[0], LOOSE[entry[0]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("floor_divide_.Tensor", "floor_divide.default"),
        ("pow_.Tensor", "pow.Tensor_Tensor"),
        ("float_power_.Scalar", "float_power.Tensor_Scalar"),
        ("transpose_.default", "transpose.int"),
        ("mul_.Tensor", "mul.Tensor"),
        ("mul.Tensor", None),
    ],
)
def test_functional_counterpart_of_an_operation_in_place(kind: str, expected: str | None) -> None:
    assert functional(kind) == expected
