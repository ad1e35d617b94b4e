"""`aot compare` finds the first layer in which a compiled model differs from a reference."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from typer import testing
from typer.testing import CliRunner

import aot as package
from aot import cli
from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array, numpy_dtype
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from aot.runtime.arrays.files import Arrays
from aot.runtime.errors import UnsupportedError, UsageError
from aot.tools.comparing import search as searching
from aot.tools.comparing.compare import Comparison, compare
from aot.tools.comparing.layer_values import Layer, layers_of
from aot.tools.comparing.search import Judge, Search
from aot.tools.comparing.sides import Compiled, Reference, Take
from aot.writers.openvino import write
from tests.archives import arrays_of

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits"
MODEL, SEVEN = DIGITS / "model.xml", DIGITS / "seven.npy"
LAYERS = ["conv", "relu", "pattern", "flat", "product", "out"]  # of `network`, by the names of its tensors


def network(path: Path, factor: float = 1.0, side: int = 4) -> Path:
    """Write conv - relu - reshape by a computed pattern - product - softmax; `factor` of the product's weights."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((3, 2, 3, 3)).astype(np.float32),
        "v": (rng.standard_normal((3 * side * side, 5)) * factor).astype(np.float32),
        "minus": np.array([-1], np.int64),
        "first": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["conv"], "c", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"], "r"),
        helper.make_node("Shape", ["x"], ["sizes"], "s"),
        helper.make_node("Gather", ["sizes", "first"], ["batch"], "g"),
        helper.make_node("Concat", ["batch", "minus"], ["pattern"], "p", axis=0),
        helper.make_node("Reshape", ["relu", "pattern"], ["flat"], "f"),
        helper.make_node("MatMul", ["flat", "v"], ["product"], "m"),
        helper.make_node("Softmax", ["product"], ["out"], "o", axis=1),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 2, side, side])
    out = helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, ["n", 5])
    constants = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, "net", [x], [out], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def data() -> Arrays:
    return {"x": np.random.default_rng(1).standard_normal((3, 2, 4, 4)).astype(np.float32)}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("against", "most"), [("reference", 400), ("onnxruntime", 64 << 20), ("openvino", 400), ("reference", 64 << 20)]
)
def test_right_code_agrees_in_each_layer(
    tmp_path: Path, data: Arrays, against: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "BATCH_BYTES", most)
    found = compare(network(tmp_path / "m.onnx"), data=data, against=against, layers=True)
    assert found.agrees and found.first is None
    tensors = {row.name: row for row in found.layers}
    assert {"c", "r", "f", "m"} <= set(tensors)
    assert all(row.found is not None and row.agrees for row in found.layers), found.text(all_layers=True)
    assert {row.kind for row in found.layers} >= {"Conv", "Relu", "Reshape", "MatMul", "Softmax"}


@pytest.mark.oracle
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("labels", [{"classlabels_ints": [7, 1, 3]}, {"classlabels_strings": ["zoo", "bee", "cat"]}])
def test_classifiers_with_maps_of_scores_are_compared_with_onnxruntime(
    tmp_path: Path, labels: dict[str, list[Any]], zipped: bool
) -> None:
    """Keys of ONNX Runtime's maps are sorted, columns are not: the labels here are in no order."""
    model = classifier(tmp_path / "m.onnx", 0.6, labels, zipped)
    found = compare(model, against="onnxruntime", layers=True)
    assert found.agrees and {row.name for row in found.outputs} == {"label", "scores" if zipped else "p"}
    assert all(row.found is not None for row in (*found.outputs, *found.layers))
    wrong = compare(model, classifier(tmp_path / "wrong.onnx", 0.7, labels, zipped), against="onnxruntime")
    assert not wrong.agrees


@pytest.mark.parametrize("kind", ["i8", "i4"])
def test_a_library_of_small_weights_has_their_bound(kind: str, tmp_path: Path) -> None:
    """Weights have 8 or 4 bits and a scale each row; the same rounding on both sides has the bound of f32."""
    wide = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    most = 127 if kind == "i8" else 7
    scales = (np.abs(wide).max(1, keepdims=True) / most).astype(np.float32)
    numbers = np.rint(wide / scales).clip(-most, most)

    def written(name: str, held: Array | None) -> Path:
        graph = Graph(name)
        b, x = Builder(graph), graph.add(Parameter(DType.F32, (Var("n", None, 0), 64)), name="x").out_port(0)
        w = b.const(wide, DType.F32)
        if held is not None:
            stored = b.const(held.astype(numpy_dtype(DType(kind))), DType(kind))
            w = b.Multiply(b.Convert(stored, destination_type=DType.F32), b.const(scales, DType.F32))
        graph.add(Result(), b.MatMul(x, w, transpose_a=False, transpose_b=True), name="y")
        write(graph, tmp_path / f"{name}.xml")
        return tmp_path / f"{name}.xml"

    plain, small, wrong = written("plain", None), written("small", numbers), written("wrong", numbers * -1)
    data = {"x": np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)}
    found = compare(plain, small, data, target="x86-64-v2")
    (row,) = found.outputs
    assert found.agrees and row.found is not None and row.found.error > 1e-3
    assert row.found.bound == (5e-2 if kind == "i8" else 0.2)
    assert not compare(plain, wrong, data, target="x86-64-v2").agrees
    (row,) = compare(small, data=data, target="x86-64-v2").outputs
    assert row.found is not None and row.found.bound == 1e-4 and row.agrees


@pytest.mark.parametrize(("precision", "bound"), [("bf16", 5e-2), ("f16", 1e-2), ("f32", 1e-4), ("f16,a=bf16", 5e-2)])
def test_bounds_are_those_of_the_precision(precision: str, bound: float) -> None:
    ones = np.ones(1, np.float32)
    row = Judge(None, CompileOptions(precision=precision)).layer(Layer("l", "l", "Relu"), ones, ones)
    assert row.found is not None and row.found.bound == bound


def classifier(path: Path, weight: float, labels: dict[str, list[Any]], zipped: bool) -> Path:
    """Write a linear classifier with three classes, whose scores are maps by label if they are zipped."""
    numbers = {"coefficients": [0.1, 0.2, -0.3, 0.4, 0.5, weight], "intercepts": [0.1, 0.2, 0.3]}
    more = {"domain": "ai.onnx.ml", "post_transform": "SOFTMAX"}
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "p"], **labels, **numbers, **more)]
    texts = "classlabels_strings" in labels
    kind = onnx.TensorProto.STRING if texts else onnx.TensorProto.INT64
    outputs = [helper.make_tensor_value_info("label", kind, ["n"])]
    if zipped:
        keys = {"classlabels_strings" if texts else "classlabels_int64s": next(iter(labels.values()))}
        nodes.append(helper.make_node("ZipMap", ["p"], ["scores"], domain="ai.onnx.ml", **keys))
        score = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
        maps = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, score))
        outputs.append(helper.make_value_info("scores", maps))
    else:
        outputs.append(helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, ["n", 3]))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 2])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], outputs), opset_imports=domains, ir_version=8), path)
    return path


@pytest.mark.parametrize("most", [400, 64 << 20])
def test_the_first_layer_that_differs_is_named(
    tmp_path: Path, data: Arrays, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "BATCH_BYTES", most)
    found = compare(network(tmp_path / "m.onnx"), network(tmp_path / "wrong.onnx", 1.01), data)
    assert not found.agrees and found.first == "m"
    errors = {row.name: row.found.error for row in found.layers if row.found is not None}
    assert errors["f"] < 1e-6 and errors["m"] == pytest.approx(0.01, rel=0.01)
    assert "> MatMul 'm'" in found.text() and "Conv 'c'" not in found.text()


def test_a_library_of_another_model_is_told(tmp_path: Path, data: Arrays) -> None:
    model, library = network(tmp_path / "m.onnx"), tmp_path / "m.so"
    aot("compile", network(tmp_path / "wrong.onnx", 2.0), "-o", library, "--target", "x86-64-v2", "--small-weights")
    found = compare(model, library, data)
    assert found.first == "out" and found.same_code is False and "another hash" in found.text()
    aot("compile", model, "-o", library, "--target", "x86-64-v2", "--small-weights", "--dim", "n=1..8")
    found = compare(model, library, data, layers=True)
    assert found.agrees and found.same_code is True


@pytest.mark.parametrize(
    "options",
    [
        ("--layout", "image=NHWC", "--mean", "image[0.5]", "--scale", "image[0.25]"),
        ("--precision", "bf16"),
        ("--shape", "image=n,1,8,8", "--dim", "n=1..8", "--specialise", "n=1,4"),
        ("--target", "x86-64-v2,v3"),
    ],
)
def test_options_of_a_library_are_those_of_its_manifest(tmp_path: Path, options: Sequence[str]) -> None:
    aot("compile", MODEL, "-o", tmp_path / "m.so", *options)
    found = compare(MODEL, tmp_path / "m.so", layers=True)
    assert found.agrees and found.same_code is True, found.text(all_layers=True)


class _Wrong(Compiled):
    """Layers from `begin` on are wrong, but only if one alone is kept."""

    def __init__(self, model: Path, begin: str, order: Sequence[str]) -> None:
        super().__init__(model, CompileOptions())
        self.wrong = set(order[order.index(begin) :])

    def values(
        self, layers: Sequence[Layer], inputs: Arrays, take: Take, known: Mapping[str, Array] | None = None
    ) -> None:
        fault = 1.0 if len(layers) == 1 else 0.0

        def changed(name: str, value: Array) -> None:
            take(name, value + fault if name in self.wrong else value)

        super().values(layers, inputs, changed, known)


@pytest.mark.parametrize("begin", ["c", "r", "m", "o"])
def test_a_fault_that_keeping_layers_hides_is_found_by_bisection(tmp_path: Path, data: Arrays, begin: str) -> None:
    model, options = network(tmp_path / "m.onnx"), CompileOptions()
    layers = [one for one in layers_of(model, options, data) if one.dtype.is_float]
    actual = _Wrong(model, begin, [one.name for one in layers])
    rows, first, alone = Search(Reference(model, options), actual, Judge(None, options), data).run(layers, bisect=True)
    assert (first, alone) == (begin, True)
    assert [row.name for row in rows if not row.agrees] == [begin]


def aot(*arguments: object, code: int = 0) -> testing.Result:
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def test_command_tells_errors_by_exit_code_text_and_json(tmp_path: Path) -> None:
    aot("compile", MODEL, "-o", tmp_path / "m.so")
    out = aot("compare", MODEL, tmp_path / "m.so", "--data", SEVEN).stdout
    assert "probabilities" in out and "agree: 1 outputs" in out
    facts = json.loads(aot("compare", MODEL, tmp_path / "m.so", "--bound", 0, "--json", code=1).stdout)
    assert facts["agrees"] is False and facts["first"] in {row["name"] for row in facts["layers"]}
    out = aot("compare", MODEL, "--keep", "__module.features.3/aten::relu/Relu,36").stdout
    assert out.count("Relu ") == 2 and "2 layers" in out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((MODEL, "--keep", "nothing"), 2, "nothing"),
        ((MODEL, "--data", f"picture={SEVEN}"), 2, "picture"),
        ((MODEL, "--against", "onnxruntime"), 2, "model.xml"),
        ((MODEL, "--against", "openvino", "--mean", "image[1]"), 3, "mean"),
        (("LIBRARY", MODEL), 2, "the first file is a model"),
        ((MODEL, "OTHER"), 2, "input"),
    ],
)
def test_incomparable_arguments_are_refused(tmp_path: Path, arguments: Sequence[Any], code: int, says: str) -> None:
    files = {"LIBRARY": tmp_path / "m.so", "OTHER": network(tmp_path / "other.onnx")}
    aot("compile", MODEL, "-o", files["LIBRARY"])
    assert says in aot("compare", *(files.get(a, a) for a in arguments), code=code).stderr


@pytest.mark.oracle
@pytest.mark.parametrize("against", ["onnxruntime", "openvino"])
def test_errors_of_a_peer_are_errors_of_ours(tmp_path: Path, against: str) -> None:
    model = network(tmp_path / "m.onnx")
    with pytest.raises((UnsupportedError, UsageError), match=r"--against|x"):
        compare(model, data={"x": np.zeros((3, 2, 5, 5), np.float32)}, against=against)


def test_run_compares_with_a_file(tmp_path: Path) -> None:
    aot("run", MODEL, SEVEN, "-o", tmp_path / "out.npz")
    aot("run", MODEL, SEVEN, "--expect", tmp_path / "out.npz", "--bound", 0)
    right = arrays_of(tmp_path / "out.npz")["probabilities"]
    np.save(tmp_path / "wrong.npy", right + np.eye(1, 10, 3, dtype=np.float32))
    assert "probabilities: " in aot("run", MODEL, SEVEN, "--expect", tmp_path / "wrong.npy", code=1).stderr
    assert "[0,3]" in aot("run", MODEL, SEVEN, "--expect", tmp_path / "wrong.npy", "--json", code=1).stdout
    np.savez(tmp_path / "other.npz", other=right)
    assert "other" in aot("run", MODEL, SEVEN, "--expect", tmp_path / "other.npz", code=2).stderr


def test_comparison_is_a_value_of_the_api(data: Arrays, tmp_path: Path) -> None:
    found = package.compare(network(tmp_path / "m.onnx"), data=data, bound=1e-3, target="x86-64-v2")
    assert isinstance(found, Comparison) and found.agrees
    assert found.as_json()["agrees"] is True


@pytest.mark.parametrize("linker", [True, False])
def test_compiled_code_does_not_hold_the_files_of_the_model(linker: bool) -> None:
    program = (
        "import json, sys; from pathlib import Path; import numpy as np\n"
        "from aot.tools.comparing import alone; from aot.options import CompileOptions\n"
        "from aot.codegen.llvm import build; from aot.runtime.errors import PlatformError\n"
        "def no_linker(arch, platform): raise PlatformError(f'link: needs a linker, got none for {arch}')\n"
        "if sys.argv[3] == 'False': build.find_linker = no_linker\n"
        "alone.LARGE = 0  # the collector frees the graph of a small model, too\n"
        "model = alone.mapped(lambda: alone.alone(Path(sys.argv[1]), CompileOptions()).built)\n"
        "maps = Path('/proc/self/maps').read_text()\n"
        "best = int(model(np.load(sys.argv[2]))[0].argmax())\n"
        "print(json.dumps(['/aot-code-' in maps, sys.argv[1].replace('.xml', '.bin') in maps, best]))\n"
    )
    command = [sys.executable, "-c", program, MODEL, SEVEN, str(linker)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    from_file, holds_model, best = json.loads(done.stdout)
    assert (from_file, best) == (linker, 7)
    assert not (linker and holds_model)
