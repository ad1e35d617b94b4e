"""Networks of PaddlePaddle for pictures, and small ones in the manner of PaddleOCR and PicoDet. Needs paddlepaddle 3.

Files of version 2 come from an environment of its own, whose NumPy is older than the one that is needed here:

    python -m benchmarks.exports.paddle_networks FOLDER [NAME ..]      with paddlepaddle 2.6: files and results
    python -m benchmarks.exports RESULTS paddle FOLDER/*               compares them
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn

SIDE = 64  # of pictures
LARGER = {"googlenet": 224, "inception_v3": 299, "alexnet": 224, "LeNet": 28}
VISION = (  # the small ones first
    "LeNet mobilenet_v3_small shufflenet_v2_x0_25 squeezenet1_1 resnet18 mobilenet_v1 mobilenet_v2 shufflenet_v2_x0_5 "
    "shufflenet_v2_swish mobilenet_v3_large alexnet vgg11 googlenet resnet50 resnext50_32x4d wide_resnet50_2 "
    "densenet121 inception_v3 shufflenet_v2_x0_33 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 "
    "squeezenet1_0 resnet34 vgg13 vgg16 vgg19 resnet101 resnext50_64x4d resnext101_32x4d resnext101_64x4d "
    "wide_resnet101_2 resnet152 resnext152_32x4d resnext152_64x4d densenet161 densenet169 densenet201 densenet264"
)


def load() -> None:
    """Import what all networks need, once."""
    import aot.frontends.paddle.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return [*OWN, *VISION.split()]


def verdict(name: str, references: bool = False) -> tuple[str, str]:
    """Return the outcome for a network, or a folder with one, and the largest difference or the error."""
    from aot.runtime.errors import AotError  # noqa: PLC0415
    from benchmarks.exports.__main__ import computed  # noqa: PLC0415
    from benchmarks.pytorch.check import difference  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(name)
        if not folder.is_dir():
            folder = Path(temporary)
            try:
                export(folder, name)
            except Exception as error:  # PaddlePaddle's, of many kinds
                return "not exported", f"{type(error).__name__}: {str(error)[:300]}"
        kept = np.load(folder / "results.npz")
        try:
            found = computed(folder, [kept["x"]], references)
        except AotError as error:
            return "refused", " | ".join(str(error).splitlines()[:4])[:600]
    wanted = [kept[f"y{i}"] for i in range(len(kept.files) - 1)]
    gap = difference([np.asarray(found[i]) for i in range(len(wanted))], wanted)
    return ("right" if gap <= 1e-4 else "differs"), f"{gap:.1e}"


def export(folder: Path, name: str) -> None:
    """Save a network, an input and PaddlePaddle's results in a folder."""
    paddle.seed(7)
    module, shape = network(name)
    draw_silent_weights(module)
    x = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)
    found = module(paddle.to_tensor(x))
    listed = found if isinstance(found, (list, tuple)) else [found]
    kept = {f"y{i}": y.numpy() for i, y in enumerate(listed)}
    np.savez(folder / "results.npz", x=x, **kept)
    sizes = [-1, 3, -1, -1] if name.startswith("text_") else [-1, *shape[1:]]
    paddle.jit.save(module, f"{folder}/inference", [paddle.static.InputSpec(sizes, "float32", "x")])


def network(name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a network in evaluation, and the shape of its input."""
    if name in OWN:
        module, shape = OWN[name](), OWN[name].shape
    else:
        own = {"num_classes": 10} if name != "inception_v3" else {}
        side = LARGER.get(name, SIDE)
        module, shape = getattr(paddle.vision.models, name)(**own), (2, 1 if name == "LeNet" else 3, side, side)
    module.eval()
    return module, shape


def draw_silent_weights(module: Any) -> None:
    """Draw the statistics of normalisations, which are 0 and 1 at first."""
    random = np.random.default_rng(7)
    for layer in module.sublayers():
        if hasattr(layer, "_variance") and hasattr(layer, "_mean"):
            for tensor, low in ((layer._mean, -0.2), (layer._variance, 0.5)):
                tensor.set_value(paddle.to_tensor(random.uniform(low, 1.5, tensor.shape).astype(np.float32)))


class Gated(nn.Layer):
    """A block of PP-LCNet: a depthwise convolution, a gate over channels, and a product."""

    def __init__(self, inputs: int, outputs: int, stride: Any = 1) -> None:
        super().__init__()
        self.depthwise = nn.Conv2D(inputs, inputs, 3, stride, 1, groups=inputs, bias_attr=False)
        self.norm, self.last_norm = nn.BatchNorm2D(inputs), nn.BatchNorm2D(outputs)
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.down, self.up = nn.Conv2D(inputs, inputs // 4, 1), nn.Conv2D(inputs // 4, inputs, 1)
        self.product = nn.Conv2D(inputs, outputs, 1, bias_attr=False)

    def forward(self, x: Any) -> Any:
        x = nn.functional.hardswish(self.norm(self.depthwise(x)))
        x = x * nn.functional.hardsigmoid(self.up(nn.functional.relu(self.down(self.pool(x)))))
        return nn.functional.hardswish(self.last_norm(self.product(x)))


class TextDetector(nn.Layer):
    """A detector as PP-OCR's: stages, maps of which are joined at one size, and a map of text."""

    shape = (1, 3, 64, 96)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2D(3, 16, 3, 2, 1)
        self.stages = nn.LayerList([Gated(16 * 2**i, 32 * 2**i, 2) for i in range(3)])
        self.joints = nn.LayerList([nn.Conv2D(32 * 2**i, 24, 1) for i in range(3)])
        self.head = nn.Sequential(
            nn.Conv2D(72, 18, 3, padding=1),
            nn.Conv2DTranspose(18, 18, 2, 2),
            nn.BatchNorm2D(18),
            nn.ReLU(),
            nn.Conv2DTranspose(18, 1, 2, 2),
            nn.Sigmoid(),
        )

    def forward(self, x: Any) -> Any:
        x, maps = self.stem(x), []
        for i in range(3):
            x = self.stages[i](x)
            maps.append(self.joints[i](x))
        size = paddle.shape(maps[0])[2:]
        larger = [nn.functional.interpolate(m, size, mode="nearest") for m in maps[1:]]
        return self.head(paddle.concat([maps[0], *larger], 1))


class TextRecogniser(nn.Layer):
    """A recogniser as PP-OCR's: stages, a sequence over the width, attention, and letters."""

    shape = (2, 3, 48, 100)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2D(3, 16, 3, 2, 1)
        self.stages = nn.Sequential(*[Gated(16 * 2**i, 32 * 2**i, (2, 1)) for i in range(2)])
        self.mixer = nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", normalize_before=True)
        self.head = nn.Linear(64, 97)

    def forward(self, x: Any) -> Any:
        x = nn.functional.avg_pool2d(self.stages(self.stem(x)), [3, 2])
        x = paddle.transpose(paddle.squeeze(paddle.mean(x, 2, keepdim=True), 2), [0, 2, 1])
        return nn.functional.softmax(self.head(self.mixer(x)), -1)


class BoxDetector(nn.Layer):
    """A detector as PicoDet: maps of three sizes, distributions of distances, boxes and scores."""

    shape = (1, 3, 64, 64)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2D(3, 16, 3, 2, 1)
        self.stages = nn.LayerList([Gated(16 * 2**i, 32 * 2**i, 2) for i in range(3)])
        self.heads = nn.LayerList([nn.Conv2D(32 * 2**i, 5 + 4 * 8, 1) for i in range(3)])

    def forward(self, x: Any) -> Any:
        x, boxes, scores = self.stem(x), [], []
        for i in range(3):
            x, side = self.stages[i](x), 16 // 2**i
            places = self.heads[i](x).flatten(2).transpose([0, 2, 1])
            found, distances = paddle.split(places, [5, 32], -1)
            distances = nn.functional.softmax(distances.reshape([-1, side * side, 4, 8]), -1)
            steps = paddle.arange(8, dtype="float32").reshape([8, 1])
            distances = paddle.matmul(distances, steps).squeeze(-1) * 4.0 * 2**i
            rows, columns = paddle.meshgrid(paddle.arange(side), paddle.arange(side))
            centre = paddle.stack([columns, rows], -1).astype("float32").reshape([1, -1, 2])
            centre = (centre + 0.5) * 4.0 * 2**i
            boxes.append(paddle.concat([centre - distances[:, :, :2], centre + distances[:, :, 2:]], -1))
            scores.append(nn.functional.sigmoid(found))
        return paddle.concat(boxes, 1), paddle.concat(scores, 1).transpose([0, 2, 1])


class Encoder(nn.Layer):
    """The encoder of a vision transformer."""

    shape = (2, 3, 32, 32)

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2D(3, 32, 8, 8)
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", dropout=0.1)
        self.layers = nn.TransformerEncoder(layer, 2)

    def forward(self, x: Any) -> Any:
        return self.layers(paddle.transpose(self.patches(x).flatten(2), [0, 2, 1]))


class Recurrent(nn.Layer):
    """A recogniser as those of version 2: recurrent layers in both directions over a sequence."""

    shape = (2, 9, 16)

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(16, 24, num_layers=2, direction="bidirectional")
        self.head = nn.Linear(48, 20)

    def forward(self, x: Any) -> Any:
        return self.head(self.cells(x)[0])


OWN = {
    "text_detector": TextDetector,
    "text_recogniser": TextRecogniser,
    "box_detector": BoxDetector,
    "encoder": Encoder,
    "recurrent": Recurrent,
}


def main() -> None:
    """Export networks, each to a folder of its name."""
    folder, *wanted = sys.argv[1:]
    for name in wanted or names():
        path = Path(folder) / name
        path.mkdir(parents=True, exist_ok=True)
        export(path, name)


if __name__ == "__main__":
    main()
