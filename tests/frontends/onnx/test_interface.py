"""Sequences and optionals as inputs and outputs: a tensor of all elements, and their lengths where these may differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import aot
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, Numbers, save

FAST = CompileOptions(level=None)
N = Numbers(0)


def run(folder: Path, text: str, *inputs: Array, shapes: dict[str, list[str]] | None = None) -> dict[str, Array]:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> m {text}')
    for given in shapes or ():  # the parser gives a type without a shape that of a scalar
        held = next(i for i in model.graph.input if i.name == given)
        held.type.sequence_type.elem_type.tensor_type.ClearField("shape")
    compiled = aot.compile_model(save(folder, model), FAST, threads=1, **({"shapes": shapes} if shapes else {}))
    return {name: np.asarray(value) for name, value in dict(compiled(*inputs)).items()}


@pytest.mark.parametrize("count", [1, 3])
def test_elements_of_one_shape_are_stacked(tmp_path: Path, count: int) -> None:
    text = """(seq(float[2, 3]) x, float[2, 3] a) => (seq(float[2, 3]) y, int64 n)
        { y = SequenceInsert(x, a)  n = SequenceLength(y) }"""
    x, a = N.f32(count, 2, 3), N.f32(2, 3)
    found = run(tmp_path, text, x, a)
    assert found["y"].tolist() == [*x.tolist(), a.tolist()] and found["n"] == count + 1


@pytest.mark.parametrize("lengths", [[2, 0, 3], [], [4]], ids=str)
@pytest.mark.parametrize("shapes", [None, {"x": ["n", "2"]}], ids=["declared", "given"])
def test_elements_whose_lengths_differ_are_joined(
    tmp_path: Path, lengths: list[int], shapes: dict[str, list[str]] | None
) -> None:
    kind = "float" if shapes else "float[n, 2]"
    body = "<body = b (float[m, 2] i) => (float[m, 2] o) { o = Neg(i) }>"
    text = f"(seq({kind}) x) => (seq({kind}) y) {{ y = SequenceMap(x) {body} }}"
    x = N.f32(sum(lengths), 2)
    found = run(tmp_path, text, x, np.array(lengths, np.int64), shapes=shapes)
    assert found["y"].tolist() == (-x).tolist() and found["y.lengths"].tolist() == lengths


def test_lengths_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    text = "(seq(float[n]) x) => (int64 n) { n = SequenceLength(x) }"
    for lengths, rule in (([1, 1], "must add up to the size"), ([-1, 4], "must not be negative")):
        with pytest.raises(UsageError, match=rule):
            run(tmp_path, text, N.f32(3), np.array(lengths))


@pytest.mark.parametrize("count", [0, 1])
def test_an_optional_has_one_element_or_none(tmp_path: Path, count: int) -> None:
    text = """(optional(float[2]) x, float[2] a) => (float[2] y, bool h) {
        h = OptionalHasElement(x)
        y = If(h) <then_branch = t () => (float[2] k) { k = OptionalGetElement(x) },
                   else_branch = e () => (float[2] l) { l = Identity(a) }> }"""
    x, a = N.f32(count, 2), N.f32(2)
    found = run(tmp_path, text, x, a)
    assert found["y"].tolist() == (x[0] if count else a).tolist() and bool(found["h"]) is bool(count)
    with pytest.raises(UsageError, match="an optional has at most one element"):
        run(tmp_path, text, N.f32(2, 2), a)


@pytest.mark.parametrize("count", [0, 2])
def test_an_optional_sequence_is_present_if_it_has_elements(tmp_path: Path, count: int) -> None:
    text = """(optional(seq(float[2])) x) => (bool h, int64 n)
        { h = OptionalHasElement(x)  s = OptionalGetElement(x)  n = SequenceLength(s) }"""
    found = run(tmp_path, text, N.f32(count, 2))
    assert (bool(found["h"]), int(found["n"])) == (count > 0, count)


@pytest.mark.parametrize("flag", [False, True])
def test_sequences_of_both_branches_are_outputs(tmp_path: Path, flag: bool) -> None:
    text = """(bool c, float[2] a, float[2] b) => (seq(float[2]) y) {
        y = If(c) <then_branch = t () => (seq(float[2]) k) { k = SequenceConstruct(a, b) },
                   else_branch = e () => (seq(float[2]) l) { l = SequenceConstruct(b, b) }> }"""
    a, b = N.f32(2), N.f32(2)
    assert run(tmp_path, text, np.array(flag), a, b)["y"].tolist() == [(a if flag else b).tolist(), b.tolist()]


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.5, False), (0.5, True)])
def test_dropout_in_training_mode_is_refused_when_it_runs(tmp_path: Path, rate: float, training: bool) -> None:
    text = "(float[2, 3] x, float r, bool t) => (float[2, 3] y) { y = Dropout(x, r, t) }"
    x, rest = N.f32(2, 3), (np.array(rate, np.float32), np.array(training))
    if rate and training:
        with pytest.raises(UsageError, match="training mode is not supported: export the model for inference"):
            run(tmp_path, text, x, *rest)
    else:
        assert run(tmp_path, text, x, *rest)["y"].tolist() == x.tolist()


def test_elements_of_an_output_have_one_type(tmp_path: Path) -> None:
    text = "(float[2] x, float[3] z) => (seq(float[n]) y) { y = SequenceConstruct(x, z) }"
    with pytest.raises(UnsupportedError, match="outputs must be tensors, got a sequence"):
        run(tmp_path, text, N.f32(2), N.f32(3))
