"""The text of graphs: what it looks like, that it is read back, and what bad text is told."""

from __future__ import annotations

from textwrap import dedent

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aot.opset  # noqa: F401
from aot.codegen.ir.loops import Var, prim, select
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.op import Foreign
from aot.ir.registry import all_operations
from aot.ir.text.parser import parse_graph
from aot.ir.text.printer import constants_by_sha, name_text, print_graph
from aot.ir.text.scanner import Scanner
from aot.ir.types import TensorType, dim_text, simplify
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

PLAIN = """\
graph m(%x: f32[batch,3], %s: f32[2,4]) {
  symbols batch in 1..64
  %w = const<f32[3,2] [1.0, 2.0, 3.0, 4.0, nan, -inf]>
  %p: f32[batch,2] = MatMul(%x, %w)
  %a/b:0: f32[batch,4] = MatMul<transpose_b=False>(%p, %s)
  %"two words": f32[batch,4] = Result(%a/b:0)
}
"""


def again(text: str, graph: Graph | None = None) -> str:
    return print_graph(parse_graph(text, constants_by_sha(graph) if graph is not None else None))


def test_plain_graph() -> None:
    assert again(PLAIN) == PLAIN.replace("<transpose_b=False>", "")


def test_parsed_graph_has_symbols_with_ranges_and_values() -> None:
    graph = parse_graph(PLAIN)
    assert graph.parameters[0].out_port(0).type.dims == (Var("batch", 65, 1), 3)
    assert graph.results[0].name == "two words"
    product = graph.results[0].source(0).node
    assert product.origin.layers == ("a/b:0",)
    assert np.array_equal(product.source(0).node.constant(1), [[1, 2], [3, 4], [np.nan, -np.inf]], equal_nan=True)


def test_attributes_at_their_defaults_are_left_out() -> None:
    graph = Graph("g")
    build = Builder(graph)
    x = build(all_operations()["Parameter"](shape=(2, 2)), name="x")
    build.MatMul(x, x, transpose_a=False, transpose_b=True, name="y")
    assert "%y: f32[2,2] = MatMul<transpose_b=True>(%x, %x)\n" in print_graph(graph)


@pytest.mark.parametrize(
    ("data", "dtype", "text"),
    [
        (np.array(7), DType.I64, "const<i64[] 7>"),
        (np.zeros((0, 3), np.float32), DType.F32, "const<f32[0,3] []>"),
        (np.array([0.1, 1e-30, -0.0, 1e20], np.float32), DType.F32, "const<f32[4] [0.1, 1e-30, -0.0, 1e+20]>"),
        (np.array([0.1], np.float64), DType.F64, "const<f64[1] [0.1]>"),
        (np.array([1.5], ml_dtypes.bfloat16), DType.BF16, "const<bf16[1] [1.5]>"),
        (np.array([-8, 7], ml_dtypes.int4), DType.I4, "const<i4[2] [-8, 7]>"),
        (np.array([3], np.uint8), DType.U3, "const<u3[1] [3]>"),
        (np.array([True, False]), DType.BOOL, "const<boolean[2] [True, False]>"),
        (np.array(['a, "b"\n', ""], object), DType.STRING, 'const<string[2] ["a, \\"b\\"\\n", ""]>'),
        (np.full((40, 2), 2.5, np.float32), DType.F32, "const<f32[40,2] fill=2.5>"),
    ],
)
def test_constants_are_printed_and_parsed_back(data: np.ndarray, dtype: DType, text: str) -> None:
    graph = Graph("g")
    graph.add(all_operations()["Constant"](element_type=dtype), name="c", data=data)
    printed = print_graph(graph)
    assert printed == f"graph g() {{\n  %c = {text}\n}}\n"
    read = parse_graph(printed).nodes[0]
    assert read.data is not None
    assert read.data.dtype == data.dtype or dtype is DType.I64
    assert read.data.shape == data.shape
    assert print_graph(read.graph) == printed


def test_long_constants_are_named_by_their_hash() -> None:
    graph = Graph("g")
    data = np.arange(100, dtype=np.float32)
    graph.add(all_operations()["Constant"](), name="c", data=data)
    text = print_graph(graph)
    assert "%c = const<f32[100] sha=" in text
    assert np.shares_memory(parse_graph(text, constants_by_sha(graph)).nodes[0].data, data)
    with pytest.raises(ModelError, match=r"with hash .* is not given"):
        parse_graph(text)


def test_foreign_operations() -> None:
    graph = Graph("g")
    types = (TensorType(DType.F32, (2,)), TensorType(DType.I32, None))
    attrs = (
        ("axis", -1),
        ("name", "a b"),
        ("T", DType.F32),
        ("eps", 1e-5),
        ("dims", (1, (2,), ())),
        ("value", np.array([1, 2])),
    )
    node = graph.add(Foreign(dialect="tf", kind="Pack", attrs=attrs, types=types), name="n", outputs=2)
    graph.add(Foreign(dialect="com.x", kind="Last"), node.out_port(1), None, name="l")
    text = print_graph(graph)
    assert text == dedent("""\
        graph g() {
          %n, %n#1: f32[2], i32[...] = tf.Pack<axis=-1, name="a b", T=f32, eps=1e-05, dims=(1, (2,), ()), \
value=const<i64[2] [1, 2]>>()
          %l: ? = com.x.Last(%n#1, none)
        }
        """)
    assert again(text) == text


def test_regions_are_printed_and_parsed_back() -> None:
    text = dedent("""\
        graph g(%c: boolean[], %x: f32[n,2]) {
          symbols n in 0.., m in 0..7
          %y: ? = If<then_inputs=(InputMap(external=1, parameter=0, axis=1),), \
then_outputs=(OutputMap(external=0, result=0),)>(%c, %x) {
            then(%p: f32[m,2]) {
              %q: f32[m,2] = Result(%p)
            }
            else() {
            }
          }
          %r: ? = Result(%y)
        }
        """)
    printed = again(text)
    assert again(printed) == printed
    assert "      %q: f32[n,2] = Result(%p)\n" in printed
    assert "InputMap(external=1, parameter=0, axis=1)" in printed
    assert parse_graph(text).results[0].source(0).node.regions["then"].parameters[0].name == "p"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = Relo(%x)", "line 2: an operation instead of 'Relo' expected"),
        ("%a = MatMul(%x, %b)", "line 2: a known name instead of %b expected"),
        ("%a = MatMul<up=1>(%x, %x)", "line 2: an attribute of MatMul instead of 'up' expected"),
        ("%x = MatMul(%x, %x)", "line 2: a new name instead of %x expected"),
        ("%a = const<f33[1] [1]>", "an element type instead of 'f33' expected"),
        ("%a = const<f32[2] [1]>", "2 elements instead of 1 expected"),
        ("%a = MatMul(%x %x)", "')' expected, got '%x)'"),
        ("%a", "'=' expected"),
        ("%a: f32[max] = MatMul(%x, %x", "')' expected"),
        ("%a: f32[foo(1)] = MatMul(%x, %x)", "a function instead of 'foo' expected"),
    ],
)
def test_bad_text(line: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_graph(f"graph g(%x: f32[2]) {{\n  {line}\n}}\n")
    assert message in str(caught.value)


def test_text_behind_the_end() -> None:
    with pytest.raises(ModelError, match="the end expected, got 'x'"):
        parse_graph("graph g() {\n}\nx")


@given(st.text(min_size=1))
def test_any_name_survives(name: str) -> None:
    text = f"graph g(%{name_text(name)}: f32[1]) {{\n}}\n"
    graph = parse_graph(text)
    assert graph.parameters[0].name == name
    assert print_graph(graph) == text


N, M = Var("n.d0", None), Var("m", 9, 1)
DIMS = st.recursive(
    st.sampled_from([N, M]) | st.integers(0, 9),
    lambda inner: (
        st.builds(lambda a, b: a + b, inner, inner)
        | st.builds(lambda a, b: a * b, inner, st.integers(1, 4))
        | st.builds(lambda a, b: a - b, inner, inner)
        | st.builds(lambda a, b: a // b, inner, st.integers(1, 4))
        | st.builds(lambda a, b: a % b, inner, st.integers(1, 4))
        | st.builds(lambda a, b: select(prim("eq", a, 0), 0, b), st.sampled_from([N, M]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(DIMS)
def test_dimensions_are_read_back(dim: object) -> None:
    plain = simplify(dim)
    scan = Scanner(dim_text(plain))
    scan.symbols = {"n.d0": N, "m": M}
    assert simplify(scan.dim()) == plain
    assert scan.at == len(scan.text)
