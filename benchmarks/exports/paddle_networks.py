"""Networks of PaddlePaddle for pictures, and small ones in the manner of PaddleOCR and PicoDet. Needs paddlepaddle.

    resnet18.json    as version 3 of PaddlePaddle saves it        resnet18.pdmodel    as version 2 does

The form is that of the version which is installed.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 64  # of pictures
LARGER = {"googlenet": 224, "inception_v3": 299, "alexnet": 224, "LeNet": 28}
VISION = (  # the small ones first
    "LeNet mobilenet_v3_small shufflenet_v2_x0_25 squeezenet1_1 resnet18 mobilenet_v1 mobilenet_v2 shufflenet_v2_x0_5 "
    "shufflenet_v2_swish mobilenet_v3_large alexnet vgg11 googlenet resnet50 resnext50_32x4d wide_resnet50_2 "
    "densenet121 inception_v3 shufflenet_v2_x0_33 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 "
    "squeezenet1_0 resnet34 vgg13 vgg16 vgg19 resnet101 resnext50_64x4d resnext101_32x4d resnext101_64x4d "
    "wide_resnet101_2 resnet152 resnext152_32x4d resnext152_64x4d densenet161 densenet169 densenet201 densenet264"
)
OWN = "text_detector text_recogniser box_detector encoder lstm"
FORM = ".pdmodel" if version("paddlepaddle").startswith("2.") else ".json"


def load() -> None:
    """Import what all networks need, once; PaddlePaddle is for each process alone."""
    import aot.frontends.paddle.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return [name + FORM for name in (*OWN.split(), *VISION.split())]


def verdict(name: str) -> tuple[str, str]:
    """Return the outcome for a network in one form, and the largest difference or the error."""
    stem = name.removesuffix(FORM)
    import paddle  # noqa: PLC0415

    import aot  # noqa: PLC0415
    from aot.runtime.errors import AotError  # noqa: PLC0415
    from benchmarks.pytorch.check import difference  # noqa: PLC0415

    paddle.seed(7)
    module, shape = network(paddle, stem)
    draw_silent_weights(paddle, module)
    x = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)
    wanted = module(paddle.to_tensor(x))
    wanted = [y.numpy() for y in (wanted if isinstance(wanted, (list, tuple)) else [wanted])]
    with tempfile.TemporaryDirectory() as folder:
        sizes = [-1, *shape[1:]] if stem not in {"text_detector", "text_recogniser"} else [-1, 3, -1, -1]
        try:
            paddle.jit.save(module, f"{folder}/inference", [paddle.static.InputSpec(sizes, "float32", "x")])
        except Exception as error:  # PaddlePaddle's, of many kinds
            return "not exported", f"{type(error).__name__}: {str(error)[:300]}"
        try:
            model = aot.compile_model(Path(folder), threads=1, max_seconds=900)
            found = model(x)
        except AotError as error:
            return "refused", " | ".join(str(error).splitlines()[:4])[:600]
    gap = difference([np.asarray(found[i]) for i in range(len(wanted))], wanted)
    return ("right" if gap <= 1e-4 else "differs"), f"{gap:.1e}"


def network(paddle: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a network in evaluation, and the shape of its input."""
    if name in OWN.split():
        module, shape = globals()[name](paddle)
    else:
        own = {"num_classes": 10} if name != "inception_v3" else {}
        side = LARGER.get(name, SIDE)
        module, shape = getattr(paddle.vision.models, name)(**own), (2, 1 if name == "LeNet" else 3, side, side)
    module.eval()
    return module, shape


def draw_silent_weights(paddle: Any, module: Any) -> None:
    """Draw the statistics of normalisations, which are 0 and 1 at first."""
    random = np.random.default_rng(7)
    for layer in module.sublayers():
        if hasattr(layer, "_variance") and hasattr(layer, "_mean"):
            for tensor, low in ((layer._mean, -0.2), (layer._variance, 0.5)):
                tensor.set_value(paddle.to_tensor(random.uniform(low, 1.5, tensor.shape).astype(np.float32)))


def block(paddle: Any, inputs: int, outputs: int, stride: Any = 1) -> Any:
    """Return a block of PP-LCNet: a depthwise convolution, a gate over channels, and a product."""
    nn = paddle.nn

    class Gate(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2D(1)
            self.down, self.up = nn.Conv2D(inputs, inputs // 4, 1), nn.Conv2D(inputs // 4, inputs, 1)

        def forward(self, x: Any) -> Any:
            return x * nn.functional.hardsigmoid(self.up(nn.functional.relu(self.down(self.pool(x)))))

    return nn.Sequential(
        nn.Conv2D(inputs, inputs, 3, stride, 1, groups=inputs, bias_attr=False),
        nn.BatchNorm2D(inputs),
        nn.Hardswish(),
        Gate(),
        nn.Conv2D(inputs, outputs, 1, bias_attr=False),
        nn.BatchNorm2D(outputs),
        nn.Hardswish(),
    )


def text_detector(paddle: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a detector as PP-OCR's: stages, maps of which are joined at one size, and a map of text."""
    nn = paddle.nn

    class Detector(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2D(3, 16, 3, 2, 1)
            self.stages = nn.LayerList([block(paddle, 16 * 2**i, 32 * 2**i, 2) for i in range(3)])
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
            for stage in self.stages:
                x = stage(x)
                maps.append(x)
            maps = [joint(m) for joint, m in zip(self.joints, maps, strict=True)]
            size = paddle.shape(maps[0])[2:]
            larger = [nn.functional.interpolate(m, size, mode="nearest") for m in maps[1:]]
            return self.head(paddle.concat([maps[0], *larger], 1))

    return Detector(), (1, 3, 64, 96)


def text_recogniser(paddle: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a recogniser as PP-OCR's: stages, a sequence over the width, attention, and letters."""
    nn = paddle.nn

    class Recogniser(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2D(3, 16, 3, 2, 1)
            self.stages = nn.Sequential(*[block(paddle, 16 * 2**i, 32 * 2**i, (2, 1)) for i in range(2)])
            self.mixer = nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", normalize_before=True)
            self.head = nn.Linear(64, 97)

        def forward(self, x: Any) -> Any:
            x = self.stages(self.stem(x))
            x = nn.functional.avg_pool2d(x, [3, 2])
            x = paddle.transpose(paddle.squeeze(paddle.mean(x, 2, keepdim=True), 2), [0, 2, 1])
            return nn.functional.softmax(self.head(self.mixer(x)), -1)

    return Recogniser(), (2, 3, 48, 100)


def box_detector(paddle: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a detector as PicoDet: maps of three sizes, distributions of distances, boxes and scores."""
    nn = paddle.nn

    class Detector(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2D(3, 16, 3, 2, 1)
            self.stages = nn.LayerList([block(paddle, 16 * 2**i, 32 * 2**i, 2) for i in range(3)])
            self.heads = nn.LayerList([nn.Conv2D(32 * 2**i, 5 + 4 * 8, 1) for i in range(3)])
            self.range = paddle.arange(8, dtype="float32")

        def forward(self, x: Any) -> Any:
            x, boxes, scores = self.stem(x), [], []
            for i, (stage, head) in enumerate(zip(self.stages, self.heads, strict=True)):
                x = stage(x)
                height, width = x.shape[2:]
                places = head(x).flatten(2).transpose([0, 2, 1])
                found, distances = paddle.split(places, [5, 32], -1)
                distances = nn.functional.softmax(distances.reshape([-1, height * width, 4, 8]), -1)
                distances = paddle.matmul(distances, self.range.reshape([8, 1])).squeeze(-1) * 4 * 2**i
                rows, columns = paddle.meshgrid(paddle.arange(height), paddle.arange(width))
                centre = (paddle.stack([columns, rows], -1).astype("float32").reshape([1, -1, 2]) + 0.5) * 4 * 2**i
                boxes.append(paddle.concat([centre - distances[..., :2], centre + distances[..., 2:]], -1))
                scores.append(nn.functional.sigmoid(found))
            return paddle.concat(boxes, 1), paddle.concat(scores, 1).transpose([0, 2, 1])

    return Detector(), (1, 3, 64, 64)


def encoder(paddle: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a vision transformer's encoder."""
    nn = paddle.nn
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", dropout=0.1)
    return nn.Sequential(nn.Conv2D(3, 32, 8, 8), nn.Flatten(2), turned(paddle), nn.TransformerEncoder(layer, 2)), (
        2,
        3,
        32,
        32,
    )


def turned(paddle: Any) -> Any:
    """Return a layer that makes a sequence of a map."""

    class Turned(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return paddle.transpose(x, [0, 2, 1])

    return Turned()


def lstm(paddle: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a recogniser of version 2: a recurrent layer in both directions over a sequence."""
    nn = paddle.nn

    class Recogniser(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.LSTM(16, 24, num_layers=2, direction="bidirectional")
            self.head = nn.Linear(48, 20)

        def forward(self, x: Any) -> Any:
            return self.head(self.cells(x)[0])

    return Recogniser(), (2, 9, 16)
