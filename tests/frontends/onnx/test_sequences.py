"""Sequences that loops fill and whose length only run time knows, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import aot
from aot.options import CompileOptions
from aot.runtime.errors import AotError, UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, Numbers, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
X = Numbers(0).f32(5, 4)
LENGTHS, PLACES = (1, 3, 5), (0, 1, -1, -3, 7)

HEAD = """
agraph (int64 n, float[5, 4] x, int64 p) => (float[?] y) {
  yes = Constant<value = bool {1}>()
  zero = Constant<value_int = 0>()
  zeros = Constant<value_ints = [0]>()
  one = Constant<value_ints = [1]>()"""

FILL = """
  begin = BEGIN
  s = Loop(n, yes, begin) <body = b (int64 i, bool go, seq(float[?]) t) => (bool more, seq(float[?]) u) {
    more = Identity(go)
    ELEMENT
    u = SequenceInsert(t, r)
  }>"""
EMPTY, BEGUN = "SequenceEmpty<dtype = 1>()", "SequenceConstruct(x, x)"
ROW = "r = Gather(x, i)"
PART = "at = Reshape(i, one)  end = Add(at, one)  r = Slice(x, zeros, end, zeros)"  # i + 1 rows
ROWS = FILL.replace("BEGIN", EMPTY).replace("ELEMENT", ROW)
PARTS = FILL.replace("BEGIN", EMPTY).replace("ELEMENT", PART)
STACK = "y = ConcatFromSequence<axis = 0, new_axis = 1>"

CASES = {
    "at": ROWS + "y = SequenceAt(s, p)",
    "length": ROWS + "k = SequenceLength(s)  y = Cast<to = 1>(k)",
    "stacked": ROWS + "y = ConcatFromSequence<axis = 1, new_axis = 1>(s)",
    "insert": ROWS + "z = Gather(x, zero)  u = SequenceInsert(s, z, p)  y = ConcatFromSequence<axis = -1>(u)",
    "erase": ROWS + f"z = Gather(x, zero)  u = SequenceInsert(s, z)  v = SequenceErase(u, p)  {STACK}(v)",
    "at_of_parts": PARTS + "y = SequenceAt(s, p)",
    "insert_in_parts": PARTS + "q = SequenceAt(s, p)  u = SequenceInsert(s, q, p)  y = ConcatFromSequence<axis = 0>(u)",
    "erase_of_parts": PARTS + "u = SequenceInsert(s, x)  v = SequenceErase(u, p)  y = ConcatFromSequence<axis = 0>(v)",
    "begun": FILL.replace("BEGIN", BEGUN).replace("ELEMENT", PART) + "y = ConcatFromSequence<axis = 0>(s)",
    "some": FILL.replace("BEGIN", EMPTY).replace(
        "ELEMENT\n    u = SequenceInsert(t, r)",
        """row = Gather(x, i)
    sum = ReduceSum<keepdims = 0>(row)
    limit = Constant<value = float {-100}>()
    wanted = Greater(sum, limit)
    u = If(wanted) <then_branch = a () => (seq(float[?]) k) { k = SequenceInsert(t, row) },
                    else_branch = b () => (seq(float[?]) l) { l = Identity(t) }>""",
    )
    + f"{STACK}(s)",
    "long": "many = Constant<value_int = 2000>()"
    + FILL.replace("Loop(n", "Loop(many").replace("BEGIN", EMPTY).replace("ELEMENT", "r = Gather(x, zero)")
    + f"{STACK}(s)",
    "read": """
  q = SplitToSequence<axis = 0, keepdims = 0>(x)
  y = Loop(n, yes) <body = b (int64 i, bool go) => (bool more, float[4] v) {
    more = Identity(go)
    v = SequenceAt(q, i)
  }>""",
    "split": "q = SplitToSequence<axis = 0>(x, n)  y = SequenceAt(q, p)",
    "branches": f"""
  c = Greater(p, zero)
  q = SplitToSequence<axis = 1, keepdims = 0>(x)
  w = If(c) <then_branch = a () => (seq(float[?]) k) {{ k = SequenceErase(q) }},
             else_branch = b () => (seq(float[?]) l) {{ f = SequenceAt(q, zero)  l = SequenceInsert(q, f) }}>
  {STACK}(w)""",
}


def written(folder: Path, body: str, head: str = HEAD) -> Path:
    return save(folder, onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>{head}\n{body}\n}}'))


def wanted(path: Path, *inputs: Array) -> Array | None:
    """Return the outputs of ONNX Runtime; None if it refuses the values."""
    try:
        return expected(path, *inputs)[0]
    except Exception:  # the classes of its errors share no other base
        return None


@pytest.mark.parametrize("name", CASES)
def test_sequences_whose_length_run_time_knows(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, CASES[name])
    model = aot.compile_model(path, CompileOptions(level=None), threads=1)
    for inputs in [(np.array(n), X, np.array(p)) for n in LENGTHS for p in PLACES]:
        found = wanted(path, *inputs)
        if found is None:
            with pytest.raises(AotError):
                model(list(inputs))
            continue
        y = model(list(inputs))[0]
        assert y.shape == found.shape
        np.testing.assert_allclose(y, found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["stacked", "erase", "erase_of_parts", "some"])
def test_elements_of_varying_sizes(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, CASES[name], HEAD.replace("[5, 4]", "[rows, width]"))
    model = aot.compile_model(path, CompileOptions(level=None), threads=1)
    for x in (X, X[:3, :2].copy()):
        inputs = (np.array(len(x)), x, np.array(0))
        np.testing.assert_allclose(model(list(inputs))[0], expected(path, *inputs)[0], rtol=1e-6, atol=1e-6)


REFUSED = {
    "elements whose sizes differ along their first axis can be joined along axis 0 only, got 1": (
        PARTS + "y = ConcatFromSequence<axis = 1>(s)"
    ),
    "elements of a sequence .* have one type, and equal sizes but for the first axis, got f32": (
        FILL.replace("BEGIN", "SequenceConstruct(x)").replace("ELEMENT", "w = Transpose(x)  r = Concat<axis = 1>(w, w)")
        + "y = ConcatFromSequence<axis = 0>(s)"
    ),
    "a sequence that a loop carries is changed by inserting and erasing": (
        FILL.replace("BEGIN", EMPTY).replace("ELEMENT\n    u = SequenceInsert(t, r)", "u = SequenceConstruct(x, x)")
        + "y = ConcatFromSequence<axis = 0>(s)"
    ),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_sequence_that_fits_no_tensor_is_refused(tmp_path: Path, rule: str) -> None:
    with pytest.raises(UnsupportedError, match=rule):
        aot.compile_model(written(tmp_path, REFUSED[rule]))


BAGS = """
agraph (int64[9] x, int64[b] offsets) => (float[?] y) <float[6, 2] table = {1,-2,3,-4,5,6,-7,8,9,1.5,2.5,-3}> {
  size = Constant<value_ints = [9]>()
  minus = Constant<value_ints = [-1]>()
  zero = Constant<value_int = 0>()
  zeros = Constant<value_ints = [0]>()
  one = Constant<value_int = 1>()
  two = Constant<value_int = 2>()
  yes = Constant<value = bool {1}>()
  rows = Gather(table, x)
  ends = Concat<axis = 0>(offsets, size)
  count = COUNT
  empty = SequenceEmpty()
  bags, last = Loop("", yes, empty, zero) <body = b (int64 i, bool go, seq(float[?]) s, int64 k)
      => (bool more, seq(float[?]) u, int64 next) {
    at = Reshape(k, minus)
    behind = Add(at, one)
    begin = Slice(ends, at, behind)
    third = Add(at, two)
    end = Slice(ends, behind, third)
    none = Equal(begin, end)
    r = If(none) <then_branch = t () => (float[1, 2] z) { z = Constant<value = float[1, 2] {0, 0}>() },
                  else_branch = e () => (float[?] m) { part = Slice(rows, begin, end)  m = REDUCE }>
    u = SequenceInsert(s, r)
    next = Add(k, one)
    more = Less(next, count)
  }>
  y = ConcatFromSequence<axis = 0>(bags)"""
REDUCTIONS = {
    "sum": "ReduceSum(part, zeros)",
    "mean": "ReduceMean<axes = [0]>(part)",
    "max": "ReduceMax<axes = [0]>(part)",
}


@pytest.mark.parametrize("count", ["known", "at run time"])
@pytest.mark.parametrize("mode", REDUCTIONS)
def test_bags_of_embeddings_as_pytorch_writes_them(tmp_path: Path, mode: str, count: str) -> None:
    """A loop over bags that inserts the reduced rows of each one; a bag may be empty."""
    counted = "Constant<value_int = 3>()" if count == "known" else "Size(offsets)"
    text = BAGS.replace("COUNT", counted).replace("REDUCE", REDUCTIONS[mode])
    path = written(tmp_path, "", text.replace("[b]", "[3]") if count == "known" else text)
    model = aot.compile_model(path, CompileOptions(level=None), threads=1)
    x = np.array([0, 5, 2, 3, 3, 1, 4, 0, 2])
    for offsets in ([0, 4, 4], [0, 2, 7], [0, 1, 9]):
        inputs = (x, np.array(offsets))
        np.testing.assert_allclose(model(list(inputs))[0], expected(path, *inputs)[0], rtol=1e-6)


@pytest.mark.parametrize("last", ["y = ConcatFromSequence<axis = 0>(q)", "y = SequenceAt(q, zero)"])
@pytest.mark.parametrize("lengths", ["given", "known"])
def test_lengths_that_do_not_add_up_are_refused(tmp_path: Path, last: str, lengths: str) -> None:
    head = "m (float[rows, 3] x, int64[2] n) => (float[?, 3] y) <int64[2] known = {2, 4}, int64 zero = {0}> {"
    body = f"given = Add(n, n)  q = SplitToSequence<axis = 0>(x, {lengths})  {last}"
    model = aot.compile_model(written(tmp_path, body, head), threads=1)
    x, half = np.arange(18, dtype=np.float32).reshape(6, 3), np.array([1, 2])
    inputs = {"x": x, "n": half}
    np.testing.assert_array_equal(model(inputs)[0], x if "Concat" in last else x[:2])
    wrong = [{"x": x[:5], "n": half}, *([{"x": x, "n": half + 1}] if lengths == "given" else [])]
    for feed in wrong:
        with pytest.raises(UsageError, match="SplitToSequence 'q': the lengths must add up to the size"):
            model(feed)


def test_a_constant_scalar_has_one_dimension_for_nonzero(tmp_path: Path) -> None:
    body = "c = Constant<value_float = 3.0>()  k = NonZero(c)  t = CastLike(x, k)  y = Add(k, t)"
    path = written(tmp_path, body, "m (float[1, 1] x) => (int64[a, b] y) {")
    np.testing.assert_array_equal(aot.compile_model(path)(np.zeros((1, 1), np.float32))[0], [[0]])
