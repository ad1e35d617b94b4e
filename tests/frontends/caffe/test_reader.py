"""Files of Caffe: both forms, phases, layers in place, pairs of files, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aot
from aot.frontends import framework_of, read_model
from aot.ir.interpret import interpret
from aot.runtime.describe import hint
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from tests.frontends.caffe.nets import inputs_of, layer, weights, written
from tests.frontends.caffe.test_operations import converted

rng = np.random.default_rng(3)
X = rng.standard_normal((1, 2, 4, 5)).astype(np.float32)
W, B = rng.standard_normal((3, 2, 1, 1)).astype(np.float32), np.array([0.5, -1, 2], np.float32)
DATA = inputs_of({"data": X.shape})
CONV = layer("Convolution", "conv", ["data"], ["conv"], "convolution_param { num_output: 3 kernel_size: 1 }")
NO_BLOBS = {"data": []}
RELU = layer("ReLU", "relu", ["conv"], ["conv"])
RIGHT = np.maximum(np.einsum("nchw,kc->nkhw", X, W[:, :, 0, 0]) + B[:, None, None], 0)
OLD = """input: "data" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 5
layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1
  convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "xavier" } } }
layers { name: "relu" type: RELU bottom: "conv" top: "conv" }
"""


def test_a_network_is_compiled_from_either_file(tmp_path: Path) -> None:
    model = written(tmp_path, DATA + CONV + RELU, {"conv": [W, B]})
    compiled = aot.compile_model(model)
    assert [i.name for i in compiled.inputs] == ["data"] and [o.name for o in compiled.outputs] == ["conv"]
    np.testing.assert_allclose(compiled(X)[0], RIGHT, rtol=1e-5, atol=1e-6)
    assert framework_of(model) == "caffe"
    assert read_model(model.with_suffix(".prototxt")).name == "net"


def test_the_older_form_means_the_same(tmp_path: Path) -> None:
    graph = converted(written(tmp_path, OLD, {"conv": [W, B]}, old=True))
    np.testing.assert_allclose(interpret(graph, [X])[0], RIGHT, rtol=1e-5, atol=1e-6)


def test_files_of_other_names_are_found_where_they_are_alone(tmp_path: Path) -> None:
    model = written(tmp_path, DATA + CONV, {"conv": [W, B]})
    text = model.with_suffix(".prototxt").rename(tmp_path / "deploy.prototxt")
    assert len(read_model(model).nodes) == len(read_model(text).nodes) > 3
    (tmp_path / "other.caffemodel").write_bytes(model.read_bytes())
    assert read_model(text, weights=model).nodes.keys() == read_model(model).nodes.keys()


def test_the_network_of_the_test_phase_is_read(tmp_path: Path) -> None:
    both = [
        layer("Power", f"p{k}", ["data"], ["data"], f"{rule} power_param {{ scale: {k} }}")
        for k, rule in ((2, "include { phase: TRAIN }"), (3, "exclude { phase: TEST }"), (5, "include { phase: TEST }"))
    ]
    staged = layer(
        "Power", "staged", ["data"], ["y"], 'include { stage: "deploy" min_level: 1 } power_param { scale: 7 }'
    )
    off = layer("Power", "off", ["y"], ["y"], 'include { not_stage: "deploy" } include { max_level: 0 }')
    state = 'state { level: 1 stage: "deploy" }\n'
    graph = converted(written(tmp_path, state + DATA + "".join(both) + staged + off, NO_BLOBS))
    np.testing.assert_allclose(interpret(graph, [X])[0], 35 * X, rtol=1e-6)


def test_a_blob_that_is_written_twice_is_the_last_one(tmp_path: Path) -> None:
    parts = [
        layer("Power", "a", ["data"], ["a"], "power_param { shift: 1 }"),
        layer("Split", "s", ["a"], ["a1", "a2"]),
        layer("ReLU", "b", ["a1"], ["a1"]),
        layer("Eltwise", "c", ["a1", "a2"], ["c"]),
        layer("Silence", "quiet", ["a2"], []),
        layer("AbsVal", "d", ["data"], ["d"]),
    ]
    graph = converted(written(tmp_path, DATA + "".join(parts), NO_BLOBS))
    assert [r.out_port(0).names[0] for r in graph.results] == ["c", "d"]
    c, d = interpret(graph, [X])
    np.testing.assert_allclose(c, np.maximum(X + 1, 0) + X + 1, rtol=1e-6)
    np.testing.assert_array_equal(d, np.abs(X))


def test_a_convolution_of_several_bottoms_has_a_result_for_each(tmp_path: Path) -> None:
    head = inputs_of({"x": X.shape, "z": X.shape})
    text = layer("Convolution", "conv", ["x", "z"], ["a", "b"], "convolution_param { num_output: 3 kernel_size: 1 }")
    a, b = interpret(converted(written(tmp_path, head + text, {"conv": [W, B]})), [X, 2 * X])
    np.testing.assert_allclose(b - B[:, None, None], 2 * (a - B[:, None, None]), rtol=1e-4, atol=1e-5)


def test_data_that_are_the_same_in_each_inference(tmp_path: Path) -> None:
    param = "dummy_data_param { shape { dim: 1 dim: 2 dim: 4 dim: 5 } data_filler { type: 'constant' value: 3 } }"
    text = layer("DummyData", "three", [], ["three"], param) + layer("Eltwise", "sum", ["data", "three"], ["y"])
    np.testing.assert_allclose(interpret(converted(written(tmp_path, DATA + text, NO_BLOBS)), [X])[0], X + 3, rtol=1e-6)


WRONG = [
    (
        DATA + 'layer { name: "a" kind: "ReLU" }',
        UnsupportedError,
        "no field|LayerParameter has the fields",
        "extension",
    ),
    (DATA + 'layers { layer { name: "a" } }', UnsupportedError, "has the fields", "upgrade_net_proto_text"),
    (DATA + 'layers { bottom: "data" top: "y" }', UnsupportedError, "of V1 or later", "upgrade_net_proto_text"),
    (DATA + "layer { name: ", CorruptError, "in text", ""),
    (DATA + layer("ReLU", "a", ["x"], ["y"]), CorruptError, "gives blob 'x'", ""),
    (DATA + layer("ReLU", "a", ["data"], ["y", "z"]), AotError, "ReLU", ""),
    (DATA + CONV, UnsupportedError, "caffemodel has no blobs", ""),
    (DATA + layer("Filter", "a", ["data"], ["y"]), UnsupportedError, "there is no conversion", ""),
    (layer("Data", "a", [], ["y"]) + layer("ReLU", "r", ["y"], ["z"]), UnsupportedError, "deploy.prototxt", ""),
    (
        DATA + layer("Python", "a", ["data"], ["y"], "python_param { module: 'm' layer: 'L' }"),
        UnsupportedError,
        "m.L",
        "",
    ),
    ('input: "x" input: "z" input_dim: 3 input_dim: 1 ' + RELU, CorruptError, "four times input_dim", ""),
    ("", CorruptError, "has layers", ""),
    (DATA + layer("Silence", "a", ["data"], []), CorruptError, "has outputs", ""),
]


@pytest.mark.parametrize(("text", "error", "rule", "step"), WRONG, ids=[rule for _, _, rule, _ in WRONG])
def test_what_is_wrong_is_said(tmp_path: Path, text: str, error: type[AotError], rule: str, step: str) -> None:
    with pytest.raises(error, match=rule) as caught:
        converted(written(tmp_path, text, {"other": [B]}))
    assert step in hint(caught.value)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    model = written(tmp_path, DATA + CONV, {"conv": [W, B]})
    whole = model.read_bytes()
    for data, rule in (
        (whole[:-3], "other bytes"),
        (b"\x0a\x03net", "without layers"),
        (weights({"conv": [W]}).replace(b"\x03\x02\x01\x01", b"\x03\x02\x01\x02", 1), "has as many numbers"),
    ):
        model.write_bytes(data)
        with pytest.raises(CorruptError, match=rule):
            read_model(model)
    model.with_suffix(".prototxt").unlink()
    with pytest.raises(UsageError, match=r"net\.prototxt"):
        read_model(model)
