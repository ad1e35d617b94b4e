"""Keras' networks as TensorFlow's page on quantisation after training converts them to TensorFlow Lite.

Needs tensorflow.

A name is `WAY/NETWORK`; a network is one of those here, of two to seven products, or one of Keras' applications.
LiteRT's reference kernels give the results that are expected. Networks of integers are compared layer by layer, on
levels: each layer gets the levels of the reference kernels. Where only weights are of 8 bits, LiteRT rounds the data of
products: a network is also right if its results are as near as LiteRT's to those of f32 data with the same weights.
"""

from __future__ import annotations

import contextlib
import copy
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = 4  # inferences whose ranges become scales
SILENT = 1e-2  # the least difference between the results of two inputs
WORDS = 100
NEAR = 1e-4  # of floats, relative to the largest number
LEVELS = 1  # that a number of a layer may be away
SHARE = 1e-2  # of the numbers of a network's layers that may be: LiteRT approximates HARD_SWISH and RESIZE_BILINEAR
PIXELS: dict[str, tuple[int, dict[str, Any]]] = {  # applications: the side of a picture, and arguments
    "MobileNet": (32, {"alpha": 0.25}),
    "MobileNetV2": (32, {"alpha": 0.35}),
    "MobileNetV3Small": (32, {"alpha": 0.75}),
    "EfficientNetB0": (32, {}),
    "DenseNet121": (32, {}),
    "NASNetMobile": (32, {}),
    "ResNet50V2": (32, {}),
    "Xception": (75, {}),
    "ConvNeXtTiny": (32, {}),
    "VGG16": (32, {}),
}
PICTURE = (32, 32, 3)


def _residual(layers: Any, x: Any) -> Any:
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(x)))
    y = layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(y))
    return layers.ReLU()(layers.add([layers.Conv2D(16, 1)(x), y]))


def _separable(layers: Any, x: Any) -> Any:
    y = layers.Conv2D(16, 3, 2, padding="same", activation="relu6")(x)
    y = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(y))
    y = layers.AveragePooling2D(2)(layers.Activation("hard_swish")(y))
    return layers.Activation("silu")(layers.BatchNormalization()(layers.Conv2D(24, 1)(y)))


def _squeeze(layers: Any, x: Any) -> Any:
    x = layers.Conv2D(32, 3, 2, activation="leaky_relu")(x)
    y = layers.Dense(8, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    return layers.multiply([x, layers.Dense(32, activation="hard_sigmoid")(y)])


def _branches(layers: Any, x: Any) -> Any:
    left, right = layers.Conv2D(16, 1, activation="relu")(x), layers.Conv2D(16, 5, padding="same", activation="tanh")(x)
    both = layers.concatenate([left, right])
    y = layers.Conv2D(32, 3, 2, padding="same", activation="elu")(layers.MaxPooling2D()(both))
    y = layers.UpSampling2D(interpolation="bilinear")(layers.Conv2DTranspose(16, 2, 2, activation="relu")(y))
    return layers.Conv2D(4, 3, dilation_rate=2)(layers.ZeroPadding2D()(layers.concatenate([both, y])))


def _groups(layers: Any, x: Any) -> Any:
    x = layers.PReLU(shared_axes=[1, 2])(layers.Conv2D(16, 3, 2)(x))
    x = layers.Activation("softplus")(layers.BatchNormalization()(layers.Conv2D(16, 3, groups=4)(x)))
    return layers.UpSampling2D()(x)


def _signal(layers: Any, x: Any) -> Any:
    y = layers.Conv1D(32, 3, padding="causal", dilation_rate=2, activation="gelu")(layers.Conv1D(32, 5, 2)(x))
    return layers.MaxPooling1D()(layers.SeparableConv1D(24, 3, activation="relu")(y))


def _perceptron(layers: Any, x: Any) -> Any:
    return layers.Dense(128, activation="sigmoid")(layers.LayerNormalization()(layers.Dense(128, "gelu")(x)))


def _attention(layers: Any, x: Any) -> Any:
    y = layers.LayerNormalization()(x)
    x = layers.add([x, layers.MultiHeadAttention(4, 16)(y, y)])
    y = layers.Dense(128, activation="gelu")(layers.LayerNormalization()(x))
    return layers.add([x, layers.Dense(64)(y)])


def _words(layers: Any, x: Any) -> Any:
    return _attention(layers, layers.Embedding(WORDS, 64)(x))


def _lstm(layers: Any, x: Any) -> Any:
    return layers.LSTM(32, return_sequences=True)(layers.Dense(32, activation="relu")(x))


def _gru(layers: Any, x: Any) -> Any:
    return layers.GRU(32, return_sequences=True, unroll=True)(x)


NETWORKS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "perceptron": (_perceptron, (64,)),
    "residual": (_residual, PICTURE),
    "separable": (_separable, PICTURE),
    "squeeze": (_squeeze, PICTURE),
    "branches": (_branches, PICTURE),
    "groups": (_groups, PICTURE),
    "signal": (_signal, (100, 8)),
    "attention": (_attention, (7, 64)),
    "words": (_words, (7,)),
    "lstm": (_lstm, (5, 32)),
    "gru": (_gru, (5, 32)),
}
WAYS = ("dynamic", "float16", "int8-float", "int8", "int16x8")
LOOPS = ("lstm",)  # TensorFlow's calibrator ends the process where a layer is a loop: these have no ranges


def load() -> None:
    """Import what all networks need, once; TensorFlow is for each process alone: a fork of one that has it hangs."""
    from benchmarks.exports import keras_networks  # noqa: PLC0415

    keras_networks.load()
    import aot.frontends.tflite.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    networks = (*NETWORKS, *PIXELS)
    return [f"{way}/{network}" for network in networks for way in WAYS[: 2 if network in LOOPS else None]]


def verdict(name: str, references: bool = False) -> tuple[str, str]:
    """Return the outcome for a network, and the largest difference, also layer by layer, or the error."""
    from aot.runtime.errors import AotError  # noqa: PLC0415
    from benchmarks.exports.__main__ import said  # noqa: PLC0415

    way, _, kind = name.partition("/")
    model, samples = network(kind)
    first, second = ([np.asarray(model(sample, training=False))] for sample in samples[:2])
    if farthest(first, second) < SILENT:
        return "not built", "the results do not depend on the input"
    try:
        content = converted(model, way, samples)
        values = reference(content, samples[0])
    except Exception as error:  # TensorFlow's, of many kinds
        return "not exported", said(error)
    try:
        return compared(content, values, way, references)
    except AotError as error:
        return "refused", " | ".join(str(error).splitlines()[:4])[:600]


def network(kind: str) -> tuple[Any, list[np.ndarray]]:
    """Return a network with random weights and statistics of an inference, and inputs for it."""
    import keras  # noqa: PLC0415

    keras.utils.set_random_seed(7)
    random = np.random.default_rng(7)
    if kind in PIXELS:
        side, arguments = PIXELS[kind]
        shape, high = (side, side, 3), 255.0
        model = getattr(keras.applications, kind)(
            weights=None, input_shape=shape, classes=10, classifier_activation=None, **arguments
        )
    else:
        (body, shape), high = NETWORKS[kind], 1.0
        given = keras.Input(shape, 1 if kind in LOOPS else None, dtype="int32" if kind == "words" else None)
        y = body(keras.layers, given)
        pooled = keras.layers.GlobalAveragePooling1D if len(y.shape) == 3 else keras.layers.GlobalAveragePooling2D
        y = y if len(y.shape) == 2 else pooled()(y)
        model = keras.Model(given, keras.layers.Dense(10, activation="softmax")(y))
    if kind == "words":
        return model, [random.integers(0, WORDS, (1, *shape)).astype(np.int32) for _ in range(SAMPLES)]
    gains = random.uniform(
        0, 1, (SAMPLES, 1, *[1] * (len(shape) - 1), shape[-1])
    )  # of channels: means of noise are alike
    samples = [(g * random.uniform(0 if high > 1 else -1, high, (1, *shape))).astype(np.float32) for g in gains]
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    model(np.concatenate(samples), training=True)
    return model, samples


def converted(model: Any, way: str, samples: list[np.ndarray]) -> bytes:
    """Return a network as a file, quantised in a way."""
    import tensorflow as tf  # noqa: PLC0415

    with contextlib.redirect_stdout(io.StringIO()):  # it lists all weights
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if way == "float16":
        converter.target_spec.supported_types = [tf.float16]
    elif way != "dynamic":
        converter.representative_dataset = lambda: ([sample] for sample in samples)
    if way == "int16x8":
        kind = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [kind, tf.lite.OpsSet.TFLITE_BUILTINS]
    if way == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with contextlib.redirect_stdout(io.StringIO()):
        return bytes(converter.convert())


def reference(content: bytes, sample: np.ndarray) -> dict[int, np.ndarray]:
    """Return all tensors of an inference by LiteRT's reference kernels: inputs, results, and those between."""
    import tensorflow as tf  # noqa: PLC0415

    kinds = tf.lite.experimental.OpResolverType
    for kernels in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            interpreter = tf.lite.Interpreter(
                model_content=content, experimental_op_resolver_type=kernels, experimental_preserve_all_tensors=True
            )
            break
        except ValueError as error:  # ELU and wide TILE have no reference kernels
            missing = error
    else:
        raise missing
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    scale, zero = given["quantization"]
    if given["dtype"] is np.int8:
        sample = np.clip(np.round(sample / scale) + zero, -128, 127).astype(np.int8)
    interpreter.set_tensor(given["index"], sample)
    interpreter.invoke()
    found: dict[int, np.ndarray] = {}
    for tensor in interpreter.get_tensor_details():
        with contextlib.suppress(ValueError):  # a tensor without data
            found[tensor["index"]] = interpreter.get_tensor(tensor["index"])
    return found


def compared(content: bytes, values: dict[int, np.ndarray], way: str, references: bool) -> tuple[str, str]:
    """Return the outcome for a file, from the tensors of an inference."""
    from tensorflow.lite.python import schema_py_generated as schema  # noqa: PLC0415

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    graph = model.subgraphs[0]
    inputs, wanted = ([values[i] for i in places] for places in (graph.inputs, graph.outputs))
    found = given(content, inputs, references)
    gap = farthest(found, wanted)
    if way in ("dynamic", "float16"):
        if gap <= NEAR or way == "float16":
            return ("right" if gap <= NEAR else "differs"), f"{gap:.1e}"
        decode(model)
        exact = reference(packed(model), inputs[0])
        theirs, ours = (farthest(results, [exact[i] for i in graph.outputs]) for results in (wanted, found))
        text = f"{gap:.1e}; from f32 data {ours:.1e}, LiteRT's {theirs:.1e}"
        return ("right" if ours <= max(NEAR, theirs) else "differs"), text
    places = separate(model, values)
    inputs, wanted = ([values[i] for i in numbers] for numbers in (places, graph.outputs))
    return by_layers(model, given(packed(model), inputs, references), wanted, f"{gap:.1e}")


def by_layers(model: Any, found: list[np.ndarray], wanted: list[np.ndarray], text: str) -> tuple[str, str]:
    """Return the outcome for a network whose layers get LiteRT's levels, and how many of their results differ."""
    from tensorflow.lite.python import schema_py_generated as schema  # noqa: PLC0415

    graph, kinds = model.subgraphs[0], {v: k for k, v in vars(schema.BuiltinOperator).items()}
    layers = {int(i): op for op in graph.operators for i in op.outputs}
    most, count, floats = Counter[str](), Counter[str](), 0.0
    for place, a, b in zip(graph.outputs, found, wanted, strict=True):
        if b.dtype.kind == "f":
            floats = max(floats, farthest([a], [b]))
            continue
        gaps = np.abs(a.astype(np.int64) - b)
        code = model.operatorCodes[layers[int(place)].opcodeIndex]
        kind = kinds[max(code.builtinCode, code.deprecatedBuiltinCode)]
        most[kind] = max(most[kind], int(gaps.max(initial=0)))
        count[kind] += int((gaps > 0).sum())
    levels, share = max(most.values(), default=0), count.total() / sum(b.size for b in wanted)
    text += f"; layers alone: at most {levels} levels, {share:.1e} of the numbers"
    text += "".join(f", {kind} {count[kind]} by {number}" for kind, number in most.items() if number)
    text += f"; floats {floats:.1e}" if floats else ""
    return ("right" if levels <= LEVELS and share <= SHARE and floats <= NEAR else "differs"), text


def farthest(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Return the largest difference, relative to the largest number of each result."""
    from benchmarks.pytorch.check import difference  # noqa: PLC0415

    return difference(found, wanted)


def given(content: bytes, inputs: list[np.ndarray], references: bool) -> list[np.ndarray]:
    """Return our results of a file."""
    from benchmarks.exports.__main__ import computed  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        return [np.asarray(y) for y in computed(path, inputs, references)]


def packed(model: Any) -> bytes:
    """Return the bytes of a file's objects."""
    import flatbuffers  # noqa: PLC0415

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def separate(model: Any, values: dict[int, np.ndarray]) -> list[int]:
    """Make the quantised tensors between operators inputs of their consumers and results; return all inputs' places.

    Sizes of tensors, and floats, still go from one operator to the next.
    """
    graph = model.subgraphs[0]
    written, copies = list(_written(graph)), dict[int, int]()
    for place in written:
        taken = copy.copy(graph.tensors[place])
        taken.name = f"levels_{place}".encode()
        taken.shape, taken.shapeSignature = np.array(values[place].shape, np.int32), None
        copies[place] = len(graph.tensors)
        graph.tensors.append(taken)
    for operator in graph.operators:
        operator.inputs = np.array([copies.get(int(i), int(i)) for i in operator.inputs], np.int32)
    inputs = [int(i) for i in graph.inputs]
    read = {int(i) for operator in graph.operators for i in operator.inputs}
    used = {place: taken for place, taken in copies.items() if taken in read}
    graph.inputs = np.array([*inputs, *used.values()], np.int32)
    graph.outputs = np.array([*written, *(i for i in graph.outputs if i not in copies)], np.int32)
    model.signatureDefs = []
    return [*inputs, *used]


def _written(graph: Any) -> Iterator[int]:
    """Yield the places of the quantised tensors that operators write."""
    for operator in graph.operators:
        for place in map(int, operator.outputs):
            scales = graph.tensors[place].quantization
            if scales is not None and scales.scale is not None and len(scales.scale):
                yield place


def decode(model: Any) -> None:
    """Replace weights of 8 bits of operators on f32 data by f32: weights times their scales."""
    from tensorflow.lite.python import schema_py_generated as schema  # noqa: PLC0415

    kinds = schema.TensorType
    for graph in model.subgraphs:
        for operator in graph.operators:
            code = model.operatorCodes[operator.opcodeIndex]
            if code.deprecatedBuiltinCode == schema.BuiltinOperator.DEQUANTIZE:
                continue
            if any(graph.tensors[i].type != kinds.FLOAT32 for i in operator.outputs):
                continue
            for place in map(int, operator.inputs):
                tensor = graph.tensors[place] if place >= 0 else None
                if tensor is None or tensor.type != kinds.INT8 or model.buffers[tensor.buffer].data is None:
                    continue
                stored = np.asarray(model.buffers[tensor.buffer].data, np.uint8).view(np.int8).reshape(tensor.shape)
                axis, scales = tensor.quantization.quantizedDimension, np.asarray(tensor.quantization.scale)
                along = [-1 if a == axis and len(scales) > 1 else 1 for a in range(stored.ndim)]
                buffer = schema.BufferT()
                buffer.data = np.frombuffer((stored * scales.reshape(along)).astype(np.float32).tobytes(), np.uint8)
                tensor.buffer, tensor.type, tensor.quantization = len(model.buffers), kinds.FLOAT32, None
                model.buffers.append(buffer)
