"""Extensions along the chapters of Model Optimizer's manual, on a network of ONNX, TensorFlow and Caffe, beside its IR.

    python -m benchmarks.model_optimizer.chapters write FOLDER     # models and extensions
    MO_PYTHON benchmarks/model_optimizer/ask_chapters.py FOLDER    # Model Optimizer's IR, or its error
    python -m benchmarks.model_optimizer.chapters compare FOLDER

MO_PYTHON has `openvino-dev==2024.6.0` and tensorflow; asked again, it begins where it stopped. `chapters.txt` holds the
cases: `== NAME FOLDER CONFIGURATION`, then the code, in front of which the imports at the top of the file stand. The
network has the same names and values in all frameworks; Caffe has no Softplus, but an ELU of that name.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from openvino import Core

from aot.options import CompileOptions
from aot.runtime.errors import AotError
from aot.tools.convert import convert_model
from benchmarks.model_optimizer.styles import SETTINGS, same
from tests.frontends.caffe import nets
from tests.frontends.onnx.models import Array, Numbers, i64
from tests.mo import style_models, tf_style_models

N = Numbers(11)
X = N.f32(1, 4, 6, 8)
FILTERS, BIAS, WEIGHTS = N.f32(4, 4, 3, 3) / 4, N.f32(4), N.f32(48, 5) / 4
MODELS = {"onnx": "model.onnx", "tf": "model.pb", "caffe": "net.caffemodel"}


def onnx_network() -> Any:
    node = style_models.node
    nodes = (
        node("Conv", ["x", "filters", "bias"], "c", kernel_shape=[3, 3], pads=[1] * 4),
        node("Relu", ["c"], "r"),
        node("Sigmoid", ["r"], "gate/s"),
        node("Mul", ["r", "gate/s"], "gate/m"),
        node("MaxPool", ["gate/m"], "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Softplus", ["p"], "mish/sp"),
        node("Tanh", ["mish/sp"], "mish/th"),
        node("Mul", ["p", "mish/th"], "mish/mi"),
        node("Transpose", ["mish/mi"], "last", perm=[0, 2, 3, 1]),
        node("Reshape", ["last", "flat"], "f"),
        node("MatMul", ["f", "weights"], "mm"),
        node("Softmax", ["mm"], "y", axis=1),
    )
    held = {"filters": FILTERS, "bias": BIAS, "weights": WEIGHTS, "flat": i64(1, 48)}
    return style_models.network(X, *nodes, outputs={"y": (1, 5)}, **held)


def tf_network() -> Any:
    net = tf_style_models.Net(X.transpose(0, 2, 3, 1)).conv("conv", "x", FILTERS.transpose(2, 3, 1, 0))
    net.constant("b", BIAS).add("BiasAdd", "c", "conv", "b", data_format=b"NHWC").add("Relu", "r", "c")
    net.add("Sigmoid", "gate/s", "r").add("Mul", "gate/m", "r", "gate/s")
    net.add("MaxPool", "p", "gate/m", padding=b"VALID", data_format=b"NHWC")
    net.lists(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    net.add("Softplus", "mish/sp", "p").add("Tanh", "mish/th", "mish/sp").add("Mul", "mish/mi", "p", "mish/th")
    net.constant("flat", np.array([1, 48])).add("Reshape", "f", "mish/mi", "flat")
    net.graph.node[-1].attr["Tshape"].type = tf_style_models.INT32
    return net.constant("weights", WEIGHTS).add("MatMul", "mm", "f", "weights").add("Softmax", "y", "mm").graph


def caffe_network(place: Path) -> None:
    """Write both files of the network."""
    layers = (
        nets.layer("Convolution", "c", ["x"], ["c"], "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }"),
        nets.layer("ReLU", "r", ["c"], ["r"]),
        nets.layer("Sigmoid", "gate/s", ["r"], ["gate/s"]),
        nets.layer("Eltwise", "gate/m", ["r", "gate/s"], ["gate/m"], "eltwise_param { operation: PROD }"),
        nets.layer("Pooling", "p", ["gate/m"], ["p"], "pooling_param { kernel_size: 2 stride: 2 }"),
        nets.layer("ELU", "mish/sp", ["p"], ["mish/sp"]),
        nets.layer("TanH", "mish/th", ["mish/sp"], ["mish/th"]),
        nets.layer("Eltwise", "mish/mi", ["p", "mish/th"], ["mish/mi"], "eltwise_param { operation: PROD }"),
        nets.layer("Permute", "last", ["mish/mi"], ["last"], "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
        nets.layer("Reshape", "f", ["last"], ["f"], "reshape_param { shape { dim: 1 dim: 48 } }"),
        nets.layer("InnerProduct", "mm", ["f"], ["mm"], "inner_product_param { num_output: 5 bias_term: false }"),
        nets.layer("Softmax", "y", ["mm"], ["y"]),
    )
    text = nets.inputs_of({"x": X.shape}) + "".join(layers)
    nets.written(place, text, {"c": [FILTERS, BIAS], "mm": [WEIGHTS.T.copy()]})


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, folder, configuration and code of each case."""
    imports, *parts = (Path(__file__).with_suffix(".txt")).read_text("utf-8").split("\n== ")
    for part in parts:
        head, _, code = part.partition("\n")
        name, folder, *config = head.split(maxsplit=2)
        yield name, folder, config[0] if config else "", f"{imports}\n\n{code}\n"


def write(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / MODELS["onnx"]).write_bytes(onnx_network().SerializeToString())
    (place / MODELS["tf"]).write_bytes(tf_network().SerializeToString())
    caffe_network(place)
    for framework in MODELS:
        for name, folder, config, code in cases():
            path = place / framework / name / "my_extensions" / folder.replace("EXT", framework) / "case.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, "utf-8")
            if config:
                (path.parents[len(Path(folder).parts)] / "case.json").write_text(json.dumps(json.loads(config)))


def computed(path: Path, x: Array) -> list[Array]:
    """Return the outputs of an IR by OpenVINO, in the order of their names."""
    model = Core().compile_model(path, "CPU", SETTINGS)
    results = model.create_infer_request().infer({0: x})
    return [results[port] for port in sorted(model.outputs, key=lambda port: port.any_name)]


def ours(place: Path, framework: str, case: Path, x: Array) -> Any:
    """Return what our IR computes; the text of the error if the case is refused."""
    own = case / "my_extensions"
    options = CompileOptions(extensions=own, transformations_config=tuple(own.glob("*.json")))
    try:
        convert_model(place / MODELS[framework], case / "ours.xml", options)
        return computed(case / "ours.xml", x)
    except AotError as error:
        return f"{type(error).__name__}: {error}"


def compare(place: Path) -> None:
    """Print the verdict of each case, and how many there are of each."""
    found: Counter[str] = Counter()
    for framework in MODELS:
        x = X.transpose(0, 2, 3, 1).copy() if framework == "tf" else X
        for case in sorted((place / framework).iterdir()):
            mine = ours(place, framework, case, x)
            theirs: Any = computed(case / "mo.xml", x) if (case / "mo.xml").is_file() else None
            error = (case / "mo.txt").read_text()[-200:] if (case / "mo.txt").is_file() else "not asked"
            refused = isinstance(mine, str)
            verdict = "both refuse" if refused and theirs is None else "refused" if refused else "differs"
            verdict = "ours alone" if not refused and theirs is None else verdict
            if not refused and theirs is not None and same(mine, theirs):
                verdict = "equal"
            found[verdict] += 1
            said = f"{mine if refused else ''} {error if theirs is None else ''}" if verdict != "equal" else ""
            print(f"{framework} {case.name}: {verdict} {said}".rstrip(), flush=True)
    print(dict(found))


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))
