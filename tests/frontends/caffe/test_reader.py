"""Files of Caffe: both forms, phases, layers in place, pairs of files, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aot
from aot.frontends import framework_of, mean_image, read_model
from aot.ir.interpret import interpret
from aot.runtime.describe import hint
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from tests.frontends.caffe.nets import blob, field, inputs_of, layer, weights, written
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
    (DATA + layer("ReLU", "a", ["x"], ["y"]), CorruptError, "must give blob 'x'", ""),
    (DATA + layer("ReLU", "a", ["data"], ["y", "z"]), AotError, "ReLU", ""),
    (DATA + CONV, UnsupportedError, "of its name, or the only one. the blobs", ""),
    (DATA + layer("Filter", "a", ["data"], ["y"]), UnsupportedError, "there is no conversion", ""),
    (layer("Data", "a", [], ["y"]) + layer("ReLU", "r", ["y"], ["z"]), UnsupportedError, "deploy.prototxt", ""),
    (
        DATA + layer("Python", "a", ["data"], ["y"], "python_param { module: 'm' layer: 'L' }"),
        UnsupportedError,
        "m.L",
        "",
    ),
    ('input: "x" input: "z" input_dim: 3 input_dim: 1 ' + RELU, CorruptError, "four times input_dim", ""),
    ("", CorruptError, "must have layers", ""),
    (DATA + layer("Silence", "a", ["data"], []), CorruptError, "must have outputs", ""),
]


@pytest.mark.parametrize(("text", "error", "rule", "step"), WRONG, ids=[rule for _, _, rule, _ in WRONG])
def test_invalid_networks_are_refused(tmp_path: Path, text: str, error: type[AotError], rule: str, step: str) -> None:
    with pytest.raises(error, match=rule) as caught:
        converted(written(tmp_path, text, {"other": [B]}))
    assert step in hint(caught.value)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    model = written(tmp_path, DATA + CONV, {"conv": [W, B]})
    whole = model.read_bytes()
    for data, rule in (
        (whole[:-3], "other bytes"),
        (b"\x0a\x03net", "without layers"),
        (weights({"conv": [W]}).replace(b"\x03\x02\x01\x01", b"\x03\x02\x01\x02", 1), "must have as many numbers"),
    ):
        model.write_bytes(data)
        with pytest.raises(CorruptError, match=rule):
            read_model(model)
    model.with_suffix(".prototxt").unlink()
    with pytest.raises(UsageError, match=r"net\.prototxt"):
        read_model(model)


OWN = """
import aot

@aot.conversion("caffe", "Twice")
def twice(node, x, blob, *, axis: int):
    return node.build.Multiply(x, node.along(node.build.Multiply(blob, 2.0), axis, x.type.rank))
"""


def test_a_layer_of_ones_own_has_a_conversion(tmp_path: Path) -> None:
    text = DATA + layer("Twice", "own", ["data"], ["y"], "scale_param { axis: 2 }")
    model = written(tmp_path, text, {"own": [np.array([1, 2, 3, 4], np.float32)]})
    (tmp_path / "own.py").write_text(OWN)
    found = aot.compile_model(model, extensions=str(tmp_path / "own.py"))(X)["y"]
    np.testing.assert_allclose(found, X * np.array([2, 4, 6, 8], np.float32)[:, None], rtol=1e-6)


def test_a_detector_is_compiled(tmp_path: Path) -> None:
    head = [
        layer("Convolution", "conv", ["data"], ["conv"], "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }"),
        layer("BatchNorm", "bn", ["conv"], ["conv"]),
        layer("Scale", "scale", ["conv"], ["conv"], "scale_param { bias_term: true }"),
        layer("ReLU", "relu", ["conv"], ["conv"]),
        layer("Pooling", "pool", ["conv"], ["pool"], "pooling_param { kernel_size: 2 stride: 2 }"),
    ]
    places = "permute_param { order: 0 order: 2 order: 3 order: 1 }"
    for name, outputs in (("loc", 8), ("conf", 6)):
        param = f"convolution_param {{ num_output: {outputs} kernel_size: 1 }}"
        head += [
            layer("Convolution", name, ["pool"], [name], param),
            layer("Permute", f"{name}_perm", [name], [f"{name}_perm"], places),
            layer("Flatten", f"{name}_flat", [f"{name}_perm"], [f"{name}_flat"]),
        ]
    priors = "prior_box_param { min_size: 8 max_size: 12 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }"
    kept = "nms_param { nms_threshold: 0.45 } code_type: CENTER_SIZE keep_top_k: 5 confidence_threshold: 0.2"
    head += [
        layer("PriorBox", "priors", ["pool", "data"], ["priors"], priors),
        layer("Reshape", "rows", ["conf_flat"], ["rows"], "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }"),
        layer("Softmax", "soft", ["rows"], ["soft"], "softmax_param { axis: 2 }"),
        layer("Flatten", "scores", ["soft"], ["scores"]),
        layer(
            "DetectionOutput",
            "out",
            ["loc_flat", "scores", "priors"],
            ["out"],
            f"detection_output_param {{ num_classes: 3 {kept} }}",
        ),
    ]
    made = np.random.default_rng(11)
    shapes = {
        "conv": [(4, 3, 3, 3), (4,)],
        "scale": [(4,), (4,)],
        "loc": [(8, 4, 1, 1), (8,)],
        "conf": [(6, 4, 1, 1), (6,)],
    }
    blobs = {name: [made.standard_normal(s).astype(np.float32) for s in sizes] for name, sizes in shapes.items()}
    blobs["bn"] = [np.zeros(4, np.float32), np.ones(4, np.float32), np.ones(1, np.float32)]
    model = written(tmp_path, inputs_of({"data": (1, 3, 16, 16)}) + "".join(head), blobs)
    x = made.standard_normal((1, 3, 16, 16)).astype(np.float32)
    found = aot.compile_model(model)(x)["out"]
    rows = found[0, 0][found[0, 0, :, 2] > 0]
    assert found.shape == (1, 1, 5, 7) and len(rows) == 5 and {*rows[:, 1]} <= {1, 2}
    np.testing.assert_allclose(found, interpret(converted(model), [x])[0], rtol=1e-4, atol=1e-5)


def test_the_means_of_pixels_are_subtracted(tmp_path: Path) -> None:
    means, file = rng.standard_normal((2, 6, 7)).astype(np.float32), tmp_path / "mean.binaryproto"
    file.write_bytes(blob(means, old=True))
    model = written(tmp_path, DATA + layer("ReLU", "r", ["data"], ["y"]), NO_BLOBS)
    found = aot.compile_model(model, level=None, mean_file=file, mean_file_offsets=(2, 0))(X)["y"]
    np.testing.assert_array_equal(found, np.maximum(X - means[:, 2:, :5], 0))
    for data, rule in ((b"\xff", "other bytes"), (b"", "got \\[0\\]"), (blob(means[0]), "channels, rows and columns")):
        file.write_bytes(data)
        with pytest.raises(CorruptError, match=rule):
            mean_image(file)


def test_numbers_may_have_eight_bytes(tmp_path: Path) -> None:
    model = written(tmp_path, DATA + layer("Bias", "bias", ["data"], ["y"]), {"bias": [np.zeros(2, np.float32)]})
    shape = field(7, field(1, b"\x02"))
    for data, right in ((np.array([1, 2.5]).tobytes(), True), (b"abc", False)):
        model.write_bytes(field(100, field(1, b"bias") + field(7, shape + field(8, data))))
        if right:
            np.testing.assert_allclose(interpret(converted(model), [X])[0], X + np.float32([[[1]], [[2.5]]]), rtol=1e-6)
        else:
            with pytest.raises(CorruptError, match="4 or 8 bytes"):
                read_model(model)
