"""Strings: packed, unpacked and moved in compiled code, which sees three tensors of numbers for each tensor of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

import runtime
from aot.codegen.ir.loops import Var
from aot.compilation.driver import compile_model
from aot.frontends.openvino.reader import read
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.ir.op import Op
from aot.ir.text.parser import parse_graph
from aot.ir.text.printer import constants_by_sha, print_graph
from aot.ir.types import Array, dtype_of
from aot.opset.control.infrastructure import Constant, Parameter, Result
from aot.opset.control.strings import StringPlaces, StringSearch, StringSymbols, StringTensorPack, StringTensorUnpack
from aot.opset.elementwise.comparison import Select
from aot.opset.elementwise.unary import Exp
from aot.opset.movement.gather import Gather
from aot.opset.movement.movement import Concat, Split, Transpose
from aot.opset.movement.shape import Reshape, ShapeOf, Squeeze
from aot.opset.movement.slicing import Slice
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.arrays.files import read_arrays, write_outputs
from aot.runtime.arrays.strings import encode
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from aot.runtime.loading.manifest import from_json
from aot.runtime.model import CompiledModel
from tests.frontends.openvino.irfile import network
from tests.properties.oracle import layer, port

FAST = CompileOptions(level=None)
WORDS = np.array(["Intel", "", "Grüße, 世界", "a\0b\0", "🙂", "x"], object)


@dataclass(frozen=True)
class Use:
    """An operation with inputs of run time and constants behind them."""

    op: Op
    inputs: Sequence[Array]
    fixed: Sequence[Array] = ()
    outputs: int = 1


def add(graph: Graph, use: Use, dynamic: bool = False, end: str = "") -> None:
    """Add the operation with inputs and results of its own; `end` is that of all names."""
    ports = list[OutPort]()
    for k, array in enumerate(use.inputs):
        shape = tuple(Var(f"n{k}_{a}{end}") for a in range(array.ndim)) if dynamic else array.shape
        ports.append(graph.add(Parameter(_type(array), shape), name=f"x{k}{end}").out_port(0))
    for k, array in enumerate(use.fixed):
        ports.append(graph.add(Constant(_type(array)), name=f"c{k}{end}", data=array).out_port(0))
    for n, out in graph.add(use.op, *ports, name=f"op{end}", outputs=use.outputs).out_ports().items():
        graph.add(Result(), out, name=f"y{n}{end}")


def graph_of(use: Use, dynamic: bool = False) -> Graph:
    graph = Graph("strings")
    add(graph, use, dynamic)
    return graph


def _type(array: Array) -> DType:
    return DType.STRING if array.dtype == object else dtype_of(array)


def check(uses: dict[str, Use]) -> None:
    """Compiled code gives what the references give, with fixed sizes and without: one network each.

    The text of the graph of each use does too.
    """
    for dynamic in (False, True):
        graph = Graph("strings")
        for n, use in enumerate(uses.values()):
            add(graph, use, dynamic, f"_{n}")
            alone = graph_of(use, dynamic)
            text = print_graph(alone)
            assert print_graph(parse_graph(text, constants_by_sha(alone))) == text
        inputs = [array for use in uses.values() for array in use.inputs]
        found, expected = (
            iter(compile_model(graph, FAST, threads=1)(*inputs).to_tuple()),
            iter(interpret(graph, inputs)),
        )
        for name, use in uses.items():
            for one, two in zip(islice(found, use.outputs), islice(expected, use.outputs), strict=True):
                assert (one.dtype, one.shape) == (two.dtype, two.shape), name
                assert one.tolist() == two.tolist(), name


def _unpacked() -> dict[str, Use]:
    shapes: list[tuple[int, ...]] = [(), (6,), (2, 3), (1, 2, 3), (0,), (2, 0)]
    return {f"unpack {s}": Use(StringTensorUnpack(), [np.resize(WORDS, s)], outputs=3) for s in shapes}


def _packed() -> dict[str, Use]:
    symbols, uses = np.frombuffer("IntelÖpenVINO".encode(), np.uint8), dict[str, Use]()
    shapes: list[tuple[int, ...]] = [(), (4,), (2, 2), (1, 2, 2), (0,)]
    for shape, kind in product(shapes, (np.int32, np.int64)):
        begins, ends = np.resize([0, 5, 3, 14], shape).astype(kind), np.resize([5, 14, 3, 14], shape).astype(kind)
        uses[f"pack {shape} of {kind.__name__}"] = Use(StringTensorPack(), [begins, ends, symbols])
    return uses


def test_bytes_that_are_no_text_stay() -> None:
    symbols = np.array([0xE4, 0xB8, 65], np.uint8)
    graph = graph_of(Use(StringTensorPack(), [np.array([0, 2]), np.array([2, 3]), symbols]))
    (found,) = compile_model(graph, FAST, threads=1)(np.array([0, 2]), np.array([2, 3]), symbols).to_tuple()
    assert [t.encode("utf-8", "surrogateescape") for t in found] == [b"\xe4\xb8", b"A"]


MOVED: dict[str, Use] = {
    "reshape": Use(Reshape(), [WORDS], [np.array([3, -1])]),
    "squeeze": Use(Squeeze(), [WORDS.reshape(1, 6)], [np.array([0])]),
    "transpose": Use(Transpose(), [WORDS.reshape(2, 3)], [np.array([1, 0])]),
    "slice": Use(Slice(), [WORDS], [np.array([4]), np.array([0]), np.array([-2])]),
    "gather": Use(Gather(), [WORDS], [np.array([[2, -1, 2]]), np.array(0)]),
    "gather by input": Use(Gather(), [WORDS, np.array([5, 0])], [np.array(0)]),
    "concat": Use(Concat(0), [WORDS, WORDS[:2], WORDS[::-1].copy()]),
    "concat with a constant": Use(Concat(0), [WORDS], [np.array(["ende", "ü"], object)]),
    "shape": Use(ShapeOf(), [WORDS]),
    "split": Use(Split(2), [WORDS], [np.array(0)], outputs=2),
    "select": Use(Select(), [WORDS == "x", WORDS, WORDS[::-1].copy()]),
}
KEYS: list[list[str]] = [sorted(WORDS), ["Inte", "Intel ", "x"], [""], []]


def _encoded(keys: list[str]) -> Sequence[Array]:
    return encode(np.array([*keys, ""], object)[:-1])


def _searched() -> dict[str, Use]:
    return {f"search {keys}": Use(StringSearch(), encode(WORDS), _encoded(keys)) for keys in KEYS}


def test_compiled_code_gives_what_the_references_give() -> None:
    check(_unpacked() | _packed() | MOVED | _searched())


def test_an_input_may_be_an_output() -> None:
    graph = Graph("echo")
    graph.add(Result(), graph.add(Parameter(DType.STRING, (Var("n"),)), name="x").out_port(0), name="y")
    assert compile_model(graph, FAST, threads=1)(WORDS)["y"].tolist() == WORDS.tolist()


def test_constants_are_known_when_compiling() -> None:
    graph = graph_of(Use(Concat(0), [], [WORDS, WORDS]))
    assert compile_model(graph, FAST, threads=1)().to_tuple()[0].tolist() == [*WORDS, *WORDS]


def test_operations_that_compute_with_strings_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'op': strings can be packed, unpacked and moved, nothing else"):
        compile_model(graph_of(Use(_Lengths(), [WORDS])), FAST)


class _Lengths(Exp):
    elements = Op.elements
    type = "Lengths"


@pytest.mark.parametrize("keys", KEYS, ids=len)
def test_strings_are_found_among_keys(keys: list[str]) -> None:
    """The place of a string among sorted keys, their number where it is none of them; one may begin with another."""
    places = [keys.index(word) if word in keys else len(keys) for word in WORDS]
    graph = graph_of(Use(StringSearch(), encode(WORDS), _encoded(keys)))
    assert interpret(graph, encode(WORDS))[0].tolist() == places


WRONG = [([-1], [2]), ([0], [4]), ([2], [1]), ([-(1 << 31)], [(1 << 31) - 1]), ([9], [9])]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_places_outside_of_the_symbols_are_refused(kind: type[np.generic]) -> None:
    pairs = [(np.array(begins, kind), np.array(ends, kind)) for begins, ends in WRONG]
    graph = graph_of(Use(StringTensorPack(), [*pairs[0], np.zeros(3, np.uint8)]), dynamic=True)
    model = compile_model(graph, FAST, threads=1)
    for begins, ends in pairs:
        with pytest.raises(UsageError, match=r"'op': strings without 0 <= begin <= end <= number of symbols"):
            model(begins, ends, np.zeros(3, np.uint8))
        with pytest.raises(UsageError, match="dimensions 0 of begins and ends must be equal"):
            model(np.resize(begins, 2), ends, np.zeros(3, np.uint8))
        fine = np.array([1], kind)
        assert model(fine, fine + 1, np.full(3, 65, np.uint8)).to_tuple()[0].tolist() == ["A"]


def test_references_of_what_passes_make() -> None:
    begins, ends, symbols = np.array([1, 0, -1]), np.array([3, 1, 2]), np.arange(3, dtype=np.uint8)
    first, last, counts = StringPlaces().evaluate(begins, ends, symbols)
    assert (first.tolist(), last.tolist(), counts.tolist()) == ([0, 2, 3], [2, 3, 3], [3, 1])
    assert StringSymbols().evaluate(begins[:2], ends[:2], symbols, counts)[0].tolist() == [1, 2, 0]


def file(folder: Path) -> Path:
    """x: string[?] -> Unpack -> Pack -> y, as an IR file."""
    sizes = (-1,)
    layers = [
        layer(0, "Parameter", "opset1", {"element_type": "string", "shape": "?"}, [], [port(0, DType.STRING, sizes)]),
        layer(
            1,
            "StringTensorUnpack",
            "opset15",
            {},
            [port(0, DType.STRING, sizes)],
            [port(1, DType.I32, sizes), port(2, DType.I32, sizes), port(3, DType.U8, sizes)],
        ),
        layer(
            2,
            "StringTensorPack",
            "opset15",
            {},
            [port(0, DType.I32, sizes), port(1, DType.I32, sizes), port(2, DType.U8, sizes)],
            [port(3, DType.STRING, sizes)],
        ),
        layer(3, "Result", "opset1", {}, [port(0, DType.STRING, sizes)], []),
    ]
    path = folder / "strings.xml"
    path.write_text(network(layers, "0.0->1.0 1.1->2.0 1.2->2.1 1.3->2.2 2.3->3.0"))
    return path


def test_from_a_file_to_a_library(tmp_path: Path) -> None:
    path = file(tmp_path)
    assert str(read(path).parameters[0].out_port(0).type.dtype) == "string"
    compile_model(path, FAST).export_model(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so", threads=1)
    assert [str(t) for t in (*model.inputs, *model.outputs)] == ["string[l0.d0]", "string[l0.d0]"]
    for words in (WORDS, WORDS[:0], np.array(["b", "ccc"]), [["p", "q"]], np.array([b"bytes"])):
        given = np.asarray(words if not isinstance(words, list) else words[0])
        expected = [w.decode() if isinstance(w, bytes) else w for w in given.tolist()]
        assert model(words).to_tuple()[0].tolist() == expected


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    return compile_model(file(tmp_path_factory.mktemp("strings")), FAST, threads=1)


def test_requests_speak_of_strings(echo: CompiledModel) -> None:
    request = echo.create_infer_request()
    request.set_tensor("l0", WORDS)
    assert request.get_tensor("l0").tolist() == request.get_input_tensor(0).tolist() == WORDS.tolist()
    request.start_async()
    request.wait()
    assert request.results["l3"].tolist() == request.get_output_tensor(0).tolist() == WORDS.tolist()
    assert request.infer({echo.input(0): WORDS[:1]})[echo.output(0)].tolist() == ["Intel"]
    with pytest.raises(UsageError, match="'l3': must not be set, as strings are always new arrays"):
        request.set_output_tensor(0, np.empty(6, object))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros(3), r"input 'l0': expected string\[l0.d0\], got float64\[3\]"),
        (np.array([["a"]]), r"input 'l0': expected string\[l0.d0\], got string\[1,1\]"),
        (np.array(["a", 1], object), "elements must be str or bytes, got int"),
    ],
)
def test_values_that_are_no_strings_are_refused(echo: CompiledModel, value: Array, text: str) -> None:
    with pytest.raises(AotError, match=text):
        echo(value)


def test_files_hold_strings(tmp_path: Path) -> None:
    write_outputs(tmp_path / "y.npz", {"y": WORDS[:3], "n": np.ones(1)})
    found = read_arrays(tmp_path / "y.npz")
    assert isinstance(found, dict)
    assert found["y"].tolist() == WORDS[:3].tolist()


Tensors = list[dict[str, object]]


DAMAGES: list[Callable[[Tensors], object]] = [
    lambda t: t.pop(1),
    lambda t: t[0].update(dtype="f32"),
    lambda t: t.reverse(),
]


@pytest.mark.parametrize("wrong", DAMAGES)
def test_manifest_names_all_three_tensors(echo: CompiledModel, wrong: Callable[[Tensors], object]) -> None:
    tree = json.loads(json.dumps(echo.manifest.json))
    wrong(tree["inputs"])
    with pytest.raises(CorruptError, match="with begins, ends and symbols of the strings 'l0'"):
        from_json(tree, "m.so")
