"""Keras' applications with random weights and small pictures, as SavedModels of `model.export`. Needs tensorflow.

Their results are compared in front of the softmax, which turns any large numbers into zeros and a one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

SIDES = (32, 75, 96, 224, 331)  # of pictures; the first one that a network takes
SILENT = 1e-3  # weights below it in magnitude would hide what they are multiplied by
ALIKE = 1e-2  # results of two pictures are at least this far from each other, relative to the largest one
NAMES = (
    "MobileNetV2 MobileNet MobileNetV3Small EfficientNetB0 EfficientNetV2B0 DenseNet121 ResNet50 ResNet50V2 VGG16 "
    "ConvNeXtTiny Xception InceptionV3 NASNetMobile InceptionResNetV2 MobileNetV3Large EfficientNetB1 EfficientNetB2 "
    "EfficientNetB3 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 ResNet101 ResNet101V2 VGG19 DenseNet169 "
    "EfficientNetV2S ConvNeXtSmall DenseNet201 ResNet152 ResNet152V2 EfficientNetB4 EfficientNetB5 EfficientNetB6 "
    "EfficientNetV2M ConvNeXtBase EfficientNetB7 EfficientNetV2L ConvNeXtLarge NASNetLarge ConvNeXtXLarge"
)


def load() -> None:
    """Import what all networks need, once; TensorFlow is for each process alone: a fork of one that has it hangs."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    import aot.frontends.tf.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    return NAMES.split()


def verdict(name: str, references: bool = False) -> tuple[str, str]:
    """Return the outcome for an application, and the largest difference or the error."""
    import keras  # noqa: PLC0415

    keras.utils.set_random_seed(7)
    for side in SIDES:
        try:
            given = {"input_shape": (side, side, 3), "classes": 10, "classifier_activation": None}
            build = partial(getattr(keras.applications, name), weights=None, **given)
            model = build()
            break
        except ValueError as error:  # a picture too small for it
            said = str(error)
    else:
        return "not built", said
    random = np.random.default_rng(7)
    for weight in model.weights:
        if np.prod(weight.shape) > 1 and np.abs(np.asarray(weight)).max() < SILENT:
            weight.assign(random.normal(0, 0.1, weight.shape))
    x = pictures(random, side)
    set_statistics(model, x, random)
    first, second = np.asarray(model(x, training=False))
    apart = np.abs(first - second).max() / np.abs(first).max()
    if apart < ALIKE:
        return "not built", f"results of two pictures are at least {ALIKE} apart, got {apart:.1e}"
    return judged(model, x, references, lambda: in_doubles(build, model, x))


def in_doubles(build: Callable[[], Any], model: Any, x: np.ndarray) -> Any:
    """Return the results in f64 of a network that `build` makes, with the weights of a model."""
    import keras  # noqa: PLC0415

    keras.config.set_dtype_policy("float64")
    try:
        exact = build()
    finally:
        keras.config.set_dtype_policy("float32")
    exact.set_weights(model.get_weights())
    return exact(x.astype(float), training=False)


def pictures(random: np.random.Generator, side: int) -> np.ndarray:
    """Return two pictures with noise in and around patches of a few colours: means of noise alone are all alike."""
    patches = random.uniform(0, 255, (2, 4, 4, 3)).repeat(-(-side // 4), 1).repeat(-(-side // 4), 2)[:, :side, :side]
    return ((patches + random.uniform(0, 255, patches.shape)) / 2).astype(np.float32)


def set_statistics(model: Any, x: np.ndarray, random: np.random.Generator) -> None:
    """Set the statistics of batch normalisation to those of an inference, as for the networks of PyTorch.

    All channels of a layer get its mean variance, and their means are moved by half of its root, at random.
    """
    import keras  # noqa: PLC0415

    plain = keras.layers.BatchNormalization.call

    def measured(norm: Any, inputs: Any, **_: Any) -> Any:
        rows = np.asarray(inputs).reshape(-1, inputs.shape[-1])
        variance = rows.var(0).mean()
        norm.moving_mean.assign(rows.mean(0) + random.normal(0, np.sqrt(variance) / 2, rows.shape[1]))
        norm.moving_variance.assign(np.full(rows.shape[1], variance))
        return plain(norm, inputs, training=False)

    with patch.object(keras.layers.BatchNormalization, "call", measured):
        model(x, training=False)


def judged(model: Any, inputs: Any, references: bool, doubles: Callable[[], Any] | None = None) -> tuple[str, str]:
    """Return the outcome for a network of Keras and its input, or a dictionary of them.

    A network that stretches roundings is right if it is as near to the results of `doubles`, in f64, as Keras' own.
    """
    import tensorflow as tf  # noqa: PLC0415

    from aot.runtime.errors import AotError  # noqa: PLC0415
    from benchmarks.exports.__main__ import computed  # noqa: PLC0415
    from benchmarks.pytorch.check import difference  # noqa: PLC0415

    wanted = listed(model(inputs, training=False))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.export(path, verbose=False)
        try:
            found = [np.asarray(y) for y in computed(path, listed(inputs), references)]
        except AotError as error:
            return "refused", " | ".join(str(error).splitlines()[:4])[:600]
        gap = difference(found, wanted)
        if gap > 1e-4:
            saved = tf.saved_model.load(path)
            if difference(found, listed(saved.serve(inputs))) <= 1e-4:
                return "not exported", f"the exported network itself differs from eager Keras: {gap:.1e}"
    if gap > 1e-4 and doubles:
        exact = listed(doubles())
        own, ours = difference(wanted, exact), difference(found, exact)
        return ("right" if ours <= own else "differs"), f"{gap:.1e}; from Keras in f64 {ours:.1e}, its own {own:.1e}"
    return ("right" if gap <= 1e-4 else "differs"), f"{gap:.1e}"


def listed(values: Any) -> list[np.ndarray]:
    """Return a tensor, or those of a dictionary in the order of their names, as arrays."""
    return [np.asarray(values[name]) for name in sorted(values)] if isinstance(values, dict) else [np.asarray(values)]
