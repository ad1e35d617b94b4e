"""Makes small networks of the usual kinds, with random weights: `python -m benchmarks.models FOLDER [NAMES...]`.

    resnet       7x7 stem, four stages of bottleneck blocks          [1, 3, 224, 224]
    mobilenet    inverted residuals with depthwise convolutions      [1, 3, 224, 224]
    transformer  four encoder layers, 8 heads                        [1, 128, 512]
    mlp          three layers                                        [1, 784]
    lstm         two layers over time                                [1, 100, 80]
    alexnet      two groups, norms over channels                     [1, 3, 224, 224]
    shufflenet   grouped convolutions, shuffled channels             [1, 3, 224, 224]
    generator    padding by reflection, instance norms, enlarged     [1, 3, 128, 128]
    unet         down, and up again by transposed convolutions       [1, 3, 128, 128]
    attention    two encoder layers over many tokens                 [1, 1024, 512]
    pyramid      convolutions side by side with dilations up to 18   [1, 512, 28, 28]
    video        convolutions over time and pictures                 [1, 3, 16, 112, 112]
    kernels      depthwise convolutions of 7x7 and of 31x31          [1, 128, 56, 56]
    groups       convolutions in groups of 2, 4 and 8 channels       [1, 64, 56, 56]
    matching     places of two pictures, rows and columns in shares  [1, 128, 24, 32] twice
    token        four decoder layers, one token, 255 before it       [1, 1, 1024] and the past
    vision       patches; one product for queries, keys and values   [1, 3, 224, 224]
    encoder      3x3 with stride 2, norms of groups of channels      [1, 3, 256, 256]
    separator    1x1 and depthwise over time, norms of all of it     [1, 128, 1000]
    faces        depthwise 5x5 and 1x1 of 24 to 96 channels          [1, 3, 256, 256]
    lcnet        depthwise 3x3 and 5x5, 1x1, h-swish                 [1, 3, 224, 224]
    picodet      the same with a pyramid of three levels             [1, 3, 256, 256]
    wide         8 channels to 8 by windows of 3x39                  [1, 8, 172, 264]
    patches      four layers of 128 over 144 patches                 [1, 3, 96, 96]
    prompt       four layers of 256 over 32 tokens, gated            [1, 32, 256]

With --f16 weights are saved in f16, as OpenVINO does by default.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset1
from openvino import opset13 as ops

from benchmarks.networks.net import SEED, Net
from benchmarks.networks.small import SMALL


def resnet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, "x")
    y = ops.relu(net.conv(x, 64, 7, 2))
    y = opset1.max_pool(y, [2, 2], [1, 1], [1, 1], [3, 3])
    for stage, (width, blocks) in enumerate([(64, 2), (128, 2), (256, 2), (512, 2)]):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = ops.relu(net.conv(y, width))
            inner = net.conv(ops.relu(net.conv(inner, width, 3, stride)), width * 4)
            shortcut = y if block else net.conv(y, width * 4, 1, stride)
            y = ops.relu(ops.add(inner, shortcut))
    return ov.Model([net.head(y, 1000)], [x], "resnet")


def mobilenet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, "x")
    y = ops.clamp(net.conv(x, 32, 3, 2), 0.0, 6.0)
    channels = (16, 24, 24, 32, 32, 64, 64, 96, 160, 160)
    for width, stride in zip(channels, (1, 2, 1, 2, 1, 2, 1, 1, 2, 1), strict=True):
        depth = y.get_output_shape(0)[1]
        inner = net.depthwise(ops.clamp(net.conv(y, depth * 6), 0.0, 6.0), stride)
        inner = net.conv(inner, width)
        y = ops.add(inner, y) if stride == 1 and depth == width else inner
    return ov.Model([net.head(ops.clamp(net.conv(y, 1280), 0.0, 6.0), 1000)], [x], "mobilenet")


def transformer(layers: int = 4, width: int = 512, heads: int = 8, length: int = 128) -> ov.Model:
    net = Net()
    x = ops.parameter([1, length, width], np.float32, "x")
    y: ov.Node = x
    for _ in range(layers):
        y = net.norm(ops.add(y, net.attention(y, heads)[0]))
        y = net.norm(ops.add(y, net.linear(ops.gelu(net.linear(y, 4 * width), "erf"), width)))
    return ov.Model([y], [x], "transformer")


def token(layers: int = 4, width: int = 1024, heads: int = 16, past: int = 255) -> ov.Model:
    net = Net()
    x = ops.parameter([1, 1, width], np.float32, "x")
    y, inputs, presents = x, [x], list[ov.Node]()
    for layer in range(layers):
        kept = [ops.parameter([1, heads, past, width // heads], np.float32, f"{name}{layer}") for name in "kv"]
        mixed, present = net.attention(net.norm(y), heads, kept)
        y = ops.add(y, mixed)
        y = ops.add(y, net.linear(ops.gelu(net.linear(net.norm(y), 4 * width), "erf"), width))
        inputs, presents = inputs + kept, presents + present
    return ov.Model([y, *presents], inputs, "token")


def mlp() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 784], np.float32, "x")
    y = ops.relu(net.linear(ops.relu(net.linear(x, 512)), 512))
    return ov.Model([ops.softmax(net.linear(y, 10), -1)], [x], "mlp")


def lstm(hidden: int = 512, length: int = 100) -> ov.Model:
    net = Net()
    x = ops.parameter([1, length, 80], np.float32, "x")
    y: ov.Node = x
    for _ in range(2):
        depth = y.get_output_shape(0)[-1]
        zero = ops.constant(np.zeros((1, 1, hidden), np.float32))
        lengths = ops.constant(np.array([length], np.int32))
        w, r = net.weights(1, 4 * hidden, depth, fan=depth), net.weights(1, 4 * hidden, hidden, fan=hidden)
        bias = net.weights(1, 4 * hidden, fan=100)
        cell = ops.lstm_sequence(y, zero, zero, lengths, w, r, bias, hidden, "forward")
        y = ops.squeeze(cell.output(0), ops.constant(np.array([1], np.int64)))
    return ov.Model([net.linear(y, 40)], [x], "lstm")


def alexnet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, "x")

    def pooled(y: ov.Node) -> ov.Node:
        return opset1.max_pool(y, [2, 2], [0, 0], [0, 0], [3, 3])

    def normed(y: ov.Node) -> ov.Node:
        return ops.lrn(y, ops.constant(np.array([1], np.int64)), 1e-4, 0.75, 1.0, 5)

    y = pooled(normed(ops.relu(net.conv(x, 96, 11, 4))))
    y = pooled(normed(ops.relu(net.grouped(y, 256, 5, 2))))
    y = ops.relu(net.grouped(ops.relu(net.conv(y, 384, 3)), 384, 3, 2))
    y = pooled(ops.relu(net.grouped(y, 256, 3, 2)))
    flat = ops.reshape(y, ops.constant(np.array([1, -1], np.int64)), False)
    return ov.Model([net.linear(ops.relu(net.linear(flat, 512)), 1000)], [x], "alexnet")


def shufflenet(groups: int = 4) -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, "x")
    y = opset1.max_pool(ops.relu(net.conv(x, 32, 3, 2)), [2, 2], [1, 1], [1, 1], [3, 3])
    for width, blocks in ((128, 3), (256, 4), (512, 3)):
        for block in range(blocks):
            inner = ops.relu(net.grouped(y, width // 2, 1, groups))
            inner = net.depthwise(_shuffled(inner, groups), 1 if block else 2)
            inner = net.grouped(inner, width, 1, groups)
            shortcut = y if block else net.conv(y, width, 1, 2)
            y = ops.relu(ops.add(inner, shortcut))
    return ov.Model([net.head(y, 1000)], [x], "shufflenet")


def _shuffled(x: ov.Node, groups: int) -> ov.Node:
    n, channels, height, width = x.get_output_shape(0)
    split = ops.constant(np.array([n, groups, channels // groups, height, width], np.int64))
    parts = ops.transpose(ops.reshape(x, split, False), ops.constant(np.array([0, 2, 1, 3, 4], np.int64)))
    return ops.reshape(parts, ops.constant(np.array([n, channels, height, width], np.int64)), False)


def generator() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 128, 128], np.float32, "x")

    def layer(y: ov.Node, channels: int, size: int, stride: int = 1) -> ov.Node:
        beside = ops.constant(np.array([0, 0, size // 2, size // 2], np.int64))
        depth = y.get_output_shape(0)[1]
        w = net.weights(channels, depth, size, size, fan=depth * size * size)
        return ops.convolution(ops.pad(y, beside, beside, "reflect"), w, [stride] * 2, [0, 0], [0, 0], [1, 1])

    def normed(y: ov.Node) -> ov.Node:
        return ops.mvn(y, ops.constant(np.array([2, 3], np.int64)), True, 1e-5, "inside_sqrt")

    def enlarged(y: ov.Node) -> ov.Node:
        n, c, h, w = y.get_output_shape(0)
        apart = ops.reshape(y, ops.constant(np.array([n, c, h, 1, w, 1], np.int64)), False)
        wide = ops.broadcast(apart, ops.constant(np.array([n, c, h, 2, w, 2], np.int64)))
        return ops.reshape(wide, ops.constant(np.array([n, c, 2 * h, 2 * w], np.int64)), False)

    y = ops.relu(normed(layer(x, 32, 9)))
    for channels in (64, 128):
        y = ops.relu(normed(layer(y, channels, 3, 2)))
    for _ in range(2):
        y = ops.add(y, normed(layer(ops.relu(normed(layer(y, 128, 3))), 128, 3)))
    for channels in (64, 32):
        y = ops.relu(normed(layer(enlarged(y), channels, 3)))
    return ov.Model([ops.tanh(layer(y, 3, 9))], [x], "generator")


def unet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 128, 128], np.float32, "x")

    def double(y: ov.Node, channels: int) -> ov.Node:
        return ops.relu(net.conv(ops.relu(net.conv(y, channels, 3)), channels, 3))

    y, kept = x, []
    for channels in (16, 32, 64):
        kept.append(double(y, channels))
        y = opset1.max_pool(kept[-1], [2, 2], [0, 0], [0, 0], [2, 2])
    y = double(y, 128)
    for channels, beside in zip((64, 32, 16), reversed(kept), strict=True):
        depth = y.get_output_shape(0)[1]
        up = ops.convolution_backprop_data(y, net.weights(depth, channels, 2, 2, fan=depth), [2, 2])
        y = double(ops.concat([up, beside], 1), channels)
    return ov.Model([ops.sigmoid(net.conv(y, 1))], [x], "unet")


def attention() -> ov.Model:
    return transformer(layers=2, length=1024)


def pyramid() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 512, 28, 28], np.float32, name="x")
    branches = [net.conv(x, 128), *(net.dilated(x, 128, d) for d in (6, 12, 18))]
    return ov.Model([ops.relu(net.conv(ops.relu(ops.concat(branches, 1)), 128))], [x], "pyramid")


def video() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 16, 112, 112], np.float32, name="x")

    def pooled(y: ov.Node, time: int) -> ov.Node:
        window, none = [time, 2, 2], [0, 0, 0]
        return opset1.max_pool(y, window, none, none, window)

    y = pooled(net.deep(x, 32), 1)
    y = pooled(net.deep(y, 64), 2)
    y = ops.reduce_mean(net.deep(y, 128), ops.constant([2, 3, 4]), False)
    return ov.Model([net.linear(y, 400)], [x], "video")


def kernels() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 128, 56, 56], np.float32, name="x")
    y = net.conv(net.depthwise(net.conv(x, 128), size=31), 128)
    for _ in range(2):
        y = ops.add(y, net.conv(ops.gelu(net.conv(net.depthwise(y, size=7), 256), "erf"), 128))
    return ov.Model([y], [x], "kernels")


def groups() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 64, 56, 56], np.float32, name="x")
    y: ov.Node = x
    for width in (2, 4, 8, 4):
        inner = ops.relu(net.conv(y, 128))
        y = ops.relu(ops.add(net.conv(ops.relu(net.grouped(inner, 128, 3, 128 // width)), 64), y))
    return ov.Model([y], [x], "groups")


def matching() -> ov.Model:
    pictures = [ops.parameter([1, 128, 24, 32], np.float32, name=name) for name in ("one", "other")]
    flat = ops.constant(np.array([1, 128, 24 * 32], np.int64))
    one, other = (ops.reshape(x, flat, False) for x in pictures)
    scores = ops.multiply(ops.matmul(one, other, True, False), ops.constant(np.float32(128**-0.5)))
    return ov.Model([ops.multiply(ops.softmax(scores, 1), ops.softmax(scores, 2))], pictures, "matching")


def vision() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, name="x")
    w = net.weights(192, 3, 16, 16, fan=768)
    patches = ops.convolution(x, w, [16, 16], [0, 0], [0, 0], [1, 1])
    flat = ops.reshape(patches, ops.constant(np.array([1, 192, 196], np.int64)), False)
    y: ov.Node = ops.transpose(flat, ops.constant(np.array([0, 2, 1], np.int64)))
    for _ in range(4):
        parts = ops.reshape(net.linear(net.norm(y), 576), ops.constant(np.array([196, 3, 3, 64], np.int64)), False)
        order, axis = ops.constant(np.array([1, 2, 0, 3], np.int64)), ops.constant(np.int64(0))
        turned = ops.transpose(parts, order)
        query, keys, values = (ops.gather(turned, ops.constant(np.int64(n)), axis) for n in range(3))
        scores = ops.multiply(ops.matmul(query, keys, False, True), ops.constant(np.float32(0.125)))
        mixed = ops.matmul(ops.softmax(scores, -1), values, False, False)
        heads = ops.transpose(mixed, ops.constant(np.array([1, 0, 2], np.int64)))
        y = ops.add(y, net.linear(ops.reshape(heads, ops.constant(np.array([1, 196, 192], np.int64)), False), 192))
        y = ops.add(y, net.linear(ops.gelu(net.linear(net.norm(y), 768), "erf"), 192))
    return ov.Model([net.linear(ops.reduce_mean(y, ops.constant(np.array([1], np.int64)), False), 1000)], [x], "vision")


def encoder() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 256, 256], np.float32, name="x")
    y: ov.Node = net.conv(x, 32, 3)
    for width in (64, 128, 256):
        y = net.conv(ops.swish(net.group_norm(y, 8)), width, 3, 2)
        y = ops.add(y, net.conv(ops.swish(net.group_norm(y, 8)), width, 3))
    return ov.Model([net.conv(y, 8)], [x], "encoder")


def separator() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 128, 1000], np.float32, name="x")
    y: ov.Node = x
    for dilation in (1, 2, 4, 8, 16, 32):
        inner = net.group_norm(ops.relu(net.timed(y, 256)), 1)
        inner = net.group_norm(ops.relu(net.timed(inner, 256, 3, dilation, True)), 1)
        y = ops.add(y, net.timed(inner, 128))
    return ov.Model([y], [x], "separator")


MODELS: dict[str, Callable[[], ov.Model]] = {
    "resnet": resnet,
    "mobilenet": mobilenet,
    "transformer": transformer,
    "mlp": mlp,
    "lstm": lstm,
    "alexnet": alexnet,
    "shufflenet": shufflenet,
    "generator": generator,
    "unet": unet,
    "attention": attention,
    "pyramid": pyramid,
    "video": video,
    "kernels": kernels,
    "groups": groups,
    "matching": matching,
    "token": token,
    "vision": vision,
    "encoder": encoder,
    "separator": separator,
    **SMALL,
}


def make(name: str, folder: Path, *, f16: bool = False) -> Path:
    """Writes model.xml, model.bin, inputs, OpenVINO's outputs in f32 and meta.json into folder/name."""
    model, path = MODELS[name](), folder / name
    path.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, path / "model.xml", compress_to_fp16=f16)
    noise = np.random.default_rng(SEED)
    arrays = {
        port.get_node().get_friendly_name(): noise.standard_normal(port.get_shape()).astype(np.float32)
        for port in model.inputs
    }
    for key, array in arrays.items():
        np.save(path / f"in_{key}.npy", array)
    saved = ov.Core().read_model(path / "model.xml")
    results = ov.Core().compile_model(saved, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(list(arrays.values()))
    for i, array in enumerate(results.values()):
        np.save(path / f"out_{i}.npy", array)
    meta = {"source": "benchmarks.models, random weights", "reference": f"OpenVINO {ov.__version__}, f32"}
    (path / "meta.json").write_text(json.dumps(meta | {"inputs": [{"name": key} for key in arrays]}) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; all of them without any")
    parser.add_argument("--f16", action="store_true", help="weights in f16")
    args = parser.parse_args()
    for name in args.names or MODELS:
        print(make(name, args.folder, f16=args.f16))


if __name__ == "__main__":
    main()
