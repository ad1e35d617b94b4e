"""`aot quantize --weights`: matrices of language models in 8 and 4 bits, against f32 and OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from onnx import helper
from typer.testing import CliRunner

import aot
from aot.cli import app
from aot.compilation.driver import in_memory, stages
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import numpy_dtype
from aot.opset.elementwise.conversion import LEVELS
from aot.options import CompileOptions
from aot.passes.weights import kept_numbers
from aot.runtime import Generator
from aot.runtime.abi import DType
from aot.runtime.errors import UsageError
from aot.tools.convert import convert_model
from aot.tools.quantizing import moments
from tests.frontends.gguf.networks import Network
from tests.frontends.huggingface.folders import write
from tests.frontends.huggingface.test_folders import CONFIG, tensors
from tests.frontends.onnx import models
from tests.lowering.quantized import HAS
from tests.passes.check import graph_of

WORDS, WIDTH = 96, 64
IDS = np.array([[3, 7, 95, 0]], np.int64)


def decoder(folder: Path) -> Path:
    """An embedding that is the last product, too, and two products between them."""
    n = models.Numbers(2)
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["a"], name="embed"),
        node("MatMul", ["a", "up"], ["b"], name="up"),
        node("Relu", ["b"], ["c"]),
        node("MatMul", ["c", "down"], ["d"], name="down"),
        node("Transpose", ["table"], ["t"], perm=[1, 0]),
        node("MatMul", ["d", "t"], ["logits"], name="head"),
    ]
    held = {"table": n.f32(WORDS, WIDTH), "up": n.f32(WIDTH, 128, size=0.1), "down": n.f32(128, WIDTH, size=0.1)}
    return models.save(folder, models.model(nodes, {"input_ids": IDS}, ["logits"], held))


@pytest.mark.parametrize(("bits", "bound"), [(8, 0.02), (4, 0.2)])
def test_decompressed_weights_equal_openvino(bits: int, bound: float, tmp_path: Path) -> None:
    path, out = decoder(tmp_path), tmp_path / "q.xml"
    found = aot.quantize_weights(path, out, bits=bits, group=32)
    assert [x.bits for x in found] == [8, bits, bits, 8]
    assert {x.group for x in found} == {32}
    y = np.array(aot.compile_model(out, threads=1)(IDS)[0])
    exact = np.array(aot.compile_model(path, threads=1)(IDS)[0])
    assert np.abs(y - exact).max() < bound * np.abs(exact).max()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    peer = np.array(ov.Core().compile_model(out, "CPU", hints)([IDS])[0])
    np.testing.assert_allclose(y, peer, atol=2e-5 * np.abs(peer).max())
    assert out.with_suffix(".bin").stat().st_size < (WORDS * WIDTH + 2 * 128 * WIDTH * bits / 8) * 1.3


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_weights_have_8_bits_and_a_scale_for_each_row(kind: str, tmp_path: Path) -> None:
    """Their sums are of integers where data are rounded, too, though zero points let them fit no i8."""
    n, rows = models.Numbers(3), {"LSTM": 512, "GRU": 384}[kind]
    nodes = [helper.make_node(kind, ["x", "w", "r"], ["y"], name="layer", hidden_size=128, direction="bidirectional")]
    held = {"w": n.f32(2, rows, 160, size=0.05), "r": n.f32(2, rows, 128, size=0.05) + np.float32(0.02)}
    path, out = models.save(tmp_path, models.model(nodes, {"x": n.f32(5, 2, 160)}, ["y"], held)), tmp_path / "q.xml"
    found, x = aot.quantize_weights(path, out, bits=4, group=16), n.f32(5, 2, 160)
    assert [(w.bits, w.group, w.shape) for w in found] == [(8, 160, (2 * rows, 160)), (8, 128, (2 * rows, 128))]
    exact = np.array(aot.compile_model(path, threads=1)(x)[0])
    y = np.array(aot.compile_model(out, threads=1, activations="f32")(x)[0])
    assert np.abs(y - exact).max() < 0.02 * np.abs(exact).max()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    np.testing.assert_allclose(y, ov.Core().compile_model(out, "CPU", hints)([x])[0], atol=2e-5)
    made = stages(out, CompileOptions(level=None, activations="int8"))
    assert not made.built.manifest.get("in_floats") or not HAS
    assert np.abs(in_memory(made.built)(x)[0] - y).max() < 0.02 * np.abs(y).max()
    assert made.groups.count("dots=") >= 2 * HAS


@pytest.mark.parametrize(
    ("kind", "bits", "has_data"), [("Q4_0", 4, True), ("Q4_K", 4, False), ("Q8_0", 8, True), ("Q4_1", 8, False)]
)
def test_integers_of_so_few_bits_stay_as_they_are(kind: str, bits: int, has_data: bool, tmp_path: Path) -> None:
    path = Network("llama", kind, tied=False).write(tmp_path / "m.gguf")
    samples = [{"input_ids": np.array([[3, 7, 60]])}] if has_data else []
    found = aot.quantize_weights(path, tmp_path / "q.xml", bits=bits, group=64, data=samples)
    assert {x.error for x in found} == {0.0} and len(found) == 9
    if not has_data:
        one, other = (Generator(aot.compile_model(p, threads=1)) for p in (path, tmp_path / "q.xml"))
        assert one.feed([5, 1, 40]).tobytes() == other.feed([5, 1, 40]).tobytes()
    elements = sum(np.prod(shape) for _, shape, _ in (t for t in Network("llama", tied=False).tensors.values()))
    if bits == 4:  # embedding and last product, of 64 words each, lie in bytes
        assert (tmp_path / "q.bin").stat().st_size < 0.9 * elements


@pytest.mark.parametrize("dtype", [DType.NF4, DType.F4E2M1])
def test_codes_stay_as_they_are(dtype: DType, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 16, (32, 1, 64)).astype(np.uint8)
    x = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)

    def make(b: Builder, x: OutPort) -> OutPort:
        numbers = b.Convert(b.const(codes.view(numpy_dtype(dtype)), dtype), destination_type=DType.F32)
        w = b.Multiply(numbers, b.const(np.full((32, 1, 1), 0.5), DType.F32))
        hidden = b.MatMul(x, b.Reshape(w, b.const([32, 64], DType.I64)), transpose_b=True)
        return b.MatMul(hidden, b.const(np.eye(32), DType.F32))

    convert_model(graph_of(make, (2, 64)), tmp_path / "m.xml")
    found = aot.quantize_weights(tmp_path / "m.xml", tmp_path / "q.xml", bits=4)
    assert [(m.bits, m.error == 0) for m in found] == [(4, True), (8, False)]
    wanted = x.astype(np.float64) @ (np.array(LEVELS[dtype])[codes.reshape(32, 64)] * 0.5).T
    y = np.array(aot.compile_model(tmp_path / "q.xml", threads=1)(x)[0])
    np.testing.assert_allclose(y, wanted, rtol=0, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_compiling_with_rounded_weights_gives_the_same_bits(
    bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedding that is the head, too, lies in the library once; large matrices wait in files."""
    monkeypatch.setattr(kept_numbers, "LEAST_NUMBERS", 1 << 12)
    path, out = decoder(tmp_path), tmp_path / "q.xml"
    rows = aot.quantize_weights(path, out, bits=bits)
    made = stages(path, weights=f"int{bits}")
    assert list(made.rounded_weights) == rows
    assert made.built.manifest["weight_bits"] == bits
    y, wanted = (in_memory(one.built, 1) for one in (made, stages(out)))
    assert np.array_equal(y(IDS)[0], wanted(IDS)[0])
    assert y.manifest.json["weights"] == wanted.manifest.json["weights"] < WORDS * WIDTH * 1.2 + 2 * WIDTH * 128 * 1.2


def test_the_place_and_the_type_of_weights_have_one_option(tmp_path: Path) -> None:
    path, out = decoder(tmp_path), tmp_path / "m.so"
    plain = aot.compile_model(path, threads=1)
    exact = np.array(plain(IDS)[0])
    shown = CliRunner().invoke(app, ["compile", str(path), "-o", str(out), "--weights", "external,bf16"])
    assert "4 matrices in 16 bits; error 0.0017" in shown.output, shown.output
    rounded = aot.runtime.load(out, 1)
    assert np.abs(np.array(rounded(IDS)[0]) - exact).max() < 0.01 * np.abs(exact).max()
    assert rounded.manifest.json["weights"] < 0.52 * plain.manifest.json["weights"]
    assert (tmp_path / "m.weights").is_file()
    shown = CliRunner().invoke(app, ["compile", str(path), "-o", str(out), "--weights", "int8,int4"])
    assert (shown.exit_code, "got int8,int4" in shown.output) == (2, True)


def test_weights_of_folders_and_small_ones_of_files(tmp_path: Path) -> None:
    made = stages(write(tmp_path / "net", CONFIG, tensors()), weights="int4")
    assert sorted(x.bits for x in made.rounded_weights if x.error > 0) == [4] * 7 + [8] * 2
    assert made.weight_bits is None  # so few elements lie in f32
    small = Network("llama", "Q4_0", tied=False).write(tmp_path / "m.gguf")
    made = stages(small, weights="int8")
    assert ({(x.bits, x.error) for x in made.rounded_weights}, made.weight_bits) == ({(4, 0)}, 4)


def test_wider_integers_are_rounded(tmp_path: Path) -> None:
    path = Network("llama", "Q8_0", tied=False).write(tmp_path / "m.gguf")
    found = aot.quantize_weights(path, tmp_path / "q.xml", bits=4, group=64)
    assert [x.error > 0 for x in found] == [x.bits == 4 for x in found]
    assert sorted(x.bits for x in found) == [4] * 7 + [8] * 2


@pytest.mark.parametrize("most", [moments.MAX_BYTES, 0], ids=["together", "one by one"])
def test_data_lessen_the_error_of_results(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of weights that multiply zeros in all samples do not count, and others make up for each other."""
    monkeypatch.setattr(moments, "MAX_BYTES", most)
    n = models.Numbers(4)
    x, weights = n.f32(8, 64), n.f32(64, 32)
    x[:, 4:] *= 0.01
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("MatMul", ["h", "v"], ["y"], name="last"),
    ]
    held = {"w": weights, "v": n.f32(32, 32)}
    path = models.save(tmp_path, models.model(nodes, {"x": x}, ["y"], held))
    exact = np.array(aot.compile_model(path, threads=1)(x)[0])
    errors: list[float] = []
    for data in ([], [{"x": x}]):
        aot.quantize_weights(path, tmp_path / "q.xml", bits=4, group=64, data=data)
        errors.append(float(np.square(np.array(aot.compile_model(tmp_path / "q.xml", threads=1)(x)[0]) - exact).mean()))
    assert errors[1] < 0.6 * errors[0]


def test_equal_data_give_equal_files_and_progress_is_told(tmp_path: Path) -> None:
    path, found, told = decoder(tmp_path), set[bytes](), list[tuple[str, int, int]]()
    for data in ([IDS[None]], [{"input_ids": IDS}]):
        options = aot.CompileOptions(on_event=lambda *event: told.append(event))
        aot.quantize_weights(path, tmp_path / "q.xml", options, bits=4, group=32, data=data)
        found.add((tmp_path / "q.bin").read_bytes())
    aot.quantize_weights(path, tmp_path / "q.xml", bits=4, group=32)
    assert len(found) == 1 and (tmp_path / "q.bin").read_bytes() not in found
    assert told[:3] == [("measure", 1, 1), ("round", 3, 4), ("round", 4, 4)]


def test_rows_of_tokens_are_samples_of_a_stateful_decoder(tmp_path: Path) -> None:
    path, found = Network("llama", "F32").write(tmp_path / "m.gguf"), set[bytes]()
    rows = np.random.default_rng(0).integers(0, 64, (3, 20))
    for data in ([rows], [{"input_ids": rows[:, None]}], [{"input_ids": row[None]} for row in rows]):
        aot.quantize_weights(path, tmp_path / "q.xml", bits=4, group=64, data=data)
        found.add((tmp_path / "q.bin").read_bytes())
    assert len(found) == 1


def test_data_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="only")]
    x = np.full((2, 64), np.inf, np.float32)
    path = models.save(tmp_path, models.model(nodes, {"x": x}, ["y"], {"w": models.Numbers(1).f32(64, 32)}))
    with pytest.raises(UsageError, match="data must give finite numbers, got others at x"):
        aot.quantize_weights(path, tmp_path / "q.xml", data=[x])
    assert not (tmp_path / "q.xml").exists()


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"bits": 3}, "weights must be of 4 or 8 bits, got 3"),
        ({"group": 7}, "a group must be an even number of weights, or 0 for a row, got 7"),
        ({"output": "q.bin"}, "the output must be an .xml file"),
    ],
)
def test_wrong_arguments(more: dict[str, object], rule: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rule):
        aot.quantize_weights(decoder(tmp_path), **{"output": tmp_path / "q.xml", **more})


def test_a_network_without_matrices(tmp_path: Path) -> None:
    path = models.save(
        tmp_path, models.model([helper.make_node("Relu", ["x"], ["y"])], {"x": np.zeros(3, np.float32)}, ["y"])
    )
    with pytest.raises(UsageError, match="the network must have matrices of constant weights, got none"):
        aot.quantize_weights(path, tmp_path / "q.xml")


def test_command_line(tmp_path: Path) -> None:
    out = tmp_path / "q.xml"
    asked = ["quantize", str(decoder(tmp_path)), "--weights", "int4", "--group", "32", "-o", str(out)]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert found.output.count("4 bits, groups of") == 2
    assert 'element_type="u4"' in out.read_text()
