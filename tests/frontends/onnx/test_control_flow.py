"""If, Loop and Scan of ONNX that only run time decides: compiled, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import aot
from aot.options import CompileOptions
from aot.runtime.errors import UnsupportedError, UsageError
from tests.frontends.onnx.models import Array, save
from tests.frontends.onnx.oracle import expected

pytestmark = pytest.mark.oracle
X = (np.arange(12, dtype=np.float32).reshape(3, 4) - 5) / 4
YES, NO = np.array(True), np.array(False)

BRANCHES = """
agraph (bool c, float[3, 4] x) => (float[a, b] y) {
  s = Constant<value_ints = [1]>()
  y = If(c) <
    then_branch = g1 () => (float[3, 4] t) { t = Mul(x, x) },
    else_branch = g2 () => (float[3, 1] e) { n = Neg(x)  e = ReduceSum(n, s) }>
}"""

GROWING = """
agraph (int64 n, float[r, 4] x) => (float[a, 4] y, float[k, 4] sums) {
  yes = Constant<value = bool {1}>()
  zero = Constant<value_ints = [0]>()
  y, sums = Loop(n, yes, x) <body = b (int64 i, bool go, float[q, 4] rows)
      => (bool more, float[p, 4] longer, float[4] total) {
    more = Identity(go)
    total = ReduceSum<keepdims = 0>(rows, zero)
    one = Unsqueeze(total, zero)
    longer = Concat<axis = 0>(rows, one)
  }>
}"""

WHILE = """
agraph (float[3, 4] x, float limit) => (float[3, 4] y, float[k, 3, 4] all) {
  yes = Constant<value = bool {1}>()
  y, all = Loop("", yes, x) <body = b (int64 i, bool go, float[3, 4] v)
      => (bool more, float[3, 4] next, float[3, 4] seen) {
    f = Cast<to = 1>(i)
    next = Add(v, f)
    top = ReduceMax<keepdims = 0>(next)
    more = Less(top, limit)
    seen = Tanh(next)
  }>
}"""

NESTED = """
agraph (int64 n, bool c, float[3, 4] x) => (float[3, 4] y) {
  yes = Constant<value = bool {1}>()
  half = Constant<value = float {0.5}>()
  y = Loop(n, yes, x) <body = b (int64 i, bool go, float[3, 4] v) => (bool more, float[3, 4] next) {
    more = Identity(go)
    next = If(c) <
      then_branch = g1 () => (float[3, 4] t) {
        t = Loop(i, yes, v) <body = d (int64 j, bool on, float[3, 4] u) => (bool still, float[3, 4] w) {
          still = Identity(on)
          h = Mul(u, half)
          w = Sub(h, x)
        }>
      },
      else_branch = g2 () => (float[3, 4] e) { e = Mul(v, half) }>
  }>
}"""

SCAN = """
agraph (float[4] s, float[3, n, 4] x) => (float[4] last, float[4, k] y) {
  last, y = Scan(s, x) <body = b (float[4] state, float[3, 4] part) => (float[4] next, float[4] out) {
    zero = Constant<value_ints = [0]>()
    sum = ReduceSum<keepdims = 0>(part, zero)
    next = Add(state, sum)
    out = Tanh(next)
  }, num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1],
     scan_output_directions = [DIRECTION]>
}"""
PARTS = [(X[0], np.stack([X / (k + 1) for k in range(n)], 1)) for n in (5, 1)]

SLICED = """
agraph (int64 n, float[3] x) => (float[a] y, float[k, 1] parts) {
  yes = Constant<value = bool {1}>()
  first = Constant<value = float[1] {-2}>()
  y, parts = Loop(n, yes, first) <body = b (int64 i, bool go, float[1] v)
      => (bool more, float[1] next, float[SIZE] part) {
    more = Identity(go)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_int = 1>()
    after = Add(i, one)
    begin = Unsqueeze(i, zero)
    end = Unsqueeze(after, zero)
    row = Slice(x, begin, end)
    next = Add(v, row)
    part = Identity(next)
  }>
}"""
ROWS = np.array([1, 2, 4], np.float32)

CASES: dict[str, tuple[str, Sequence[Sequence[Array]]]] = {
    "branches": (BRANCHES, [(YES, X), (NO, X)]),
    "growing": (GROWING, [(np.array(n, np.int64), X[:r]) for n, r in ((3, 1), (0, 2), (40, 3))]),
    "while": (WHILE, [(X, np.array(t, np.float32)) for t in (9, -9, 100)]),
    "nested": (NESTED, [(np.array(n, np.int64), c, X) for n in (3, 0) for c in (YES, NO)]),
    "sliced": (SLICED.replace("SIZE", "1"), [(np.array(n, np.int64), ROWS) for n in (0, 1, 3)]),
    "scan": (SCAN.replace("DIRECTION", "0"), PARTS),
    "scan_backwards": (SCAN.replace("DIRECTION", "1"), PARTS),
    "scan_from_the_first": (
        SCAN.replace("DIRECTION", "0").replace("input_directions = [1]", "input_directions = [0]"),
        PARTS,
    ),
}


def written(folder: Path, text: str) -> Path:
    return save(folder, onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>{text}'))


@pytest.mark.parametrize("name", CASES)
def test_control_flow_equals_onnx_runtime(tmp_path: Path, name: str) -> None:
    text, inputs = CASES[name]
    path = written(tmp_path, text)
    model = aot.compile_model(path, CompileOptions(level=None), threads=1)
    for arrays in inputs:
        found = model(list(arrays))
        for i, wanted in enumerate(expected(path, *arrays)):
            assert found[i].shape == wanted.shape
            np.testing.assert_allclose(found[i], wanted, rtol=1e-4, atol=1e-5)


def test_a_batch_of_no_rows_is_refused(tmp_path: Path) -> None:
    text = """
    agraph (float[0, 4] s, float[0, 3, 4] x) => (float[0, 4] last, float[0, 3, 4] y) {
      last, y = Scan<num_scan_inputs = 1, body = b (float[4] state, float[4] part) => (float[4] next, float[4] out) {
        next = Add(state, part)
        out = Identity(next)
      }>("", s, x)
    }"""
    path = save(tmp_path, onnx.parser.parse_model(f'<ir_version: 3, opset_import: ["" : 8]>{text}'))
    with pytest.raises(UnsupportedError, match="Scan: a batch of no rows is not supported"):
        aot.compile_model(path)


@pytest.mark.parametrize("more", ["Identity(go)", "Constant<value = bool {1}>()"])
def test_a_loop_that_cannot_end_is_refused(tmp_path: Path, more: str) -> None:
    """The file says so itself, or passes find out by folding constants."""
    text = f"""
    agraph (float[3, 4] x) => (float[3, 4] y) {{
      yes = Constant<value = bool {{1}}>()
      y = Loop("", yes, x) <body = b (int64 i, bool go, float[3, 4] v) => (bool more, float[3, 4] next) {{
        more = {more}
        next = Tanh(v)
      }}>
    }}"""
    path = written(tmp_path, text)
    with pytest.raises(UnsupportedError, match="Loop: it must end by its condition or after a number of iterations"):
        aot.compile_model(path)


def test_parts_of_a_collected_output_have_the_size_that_the_file_declares(tmp_path: Path) -> None:
    """Behind the last row of x there is none; without a size in the file, nothing tells it."""
    compiled = aot.compile_model(written(tmp_path, SLICED.replace("SIZE", "1")))
    with pytest.raises(UsageError, match=r"sizes of axes \[0\] that the file declares, \[1\]"):
        compiled(np.array(4, np.int64), ROWS)
    with pytest.raises(UnsupportedError, match="parts of a collected output must have equal sizes"):
        aot.compile_model(written(tmp_path, SLICED.replace("SIZE", "s")))
