"""Metadata of tensors: what `aot info` tells, and that damaged ones harm nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

from aot.frontends import read_model
from aot.frontends.tflite.normalization import tensors_described
from tests.frontends.tflite.models import Tensor, constant
from tests.frontends.tflite.test_reader import saved, sum_of

BYTE, OFFSET = "byte", "offset"  # kinds of fields


class Schema:
    """Writes tables by the numbers of their fields, each with its kind: BYTE or OFFSET."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(256)

    def table(self, count: int, fields: Mapping[int, tuple[str, Any]]) -> int:
        self.builder.StartObject(count)
        for number, (kind, value) in fields.items():
            if kind == BYTE:
                self.builder.PrependUint8Slot(number, value, 0)
            else:
                self.builder.PrependUOffsetTRelativeSlot(number, value, 0)
        return self.builder.EndObject()

    def numbers(self, *values: float) -> tuple[str, int]:
        return OFFSET, self.builder.CreateNumpyVector(np.float32(values))

    def text(self, value: str) -> tuple[str, int]:
        return OFFSET, self.builder.CreateString(value)

    def tables(self, *offsets: int) -> tuple[str, int]:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return OFFSET, self.builder.EndVector()


def metadata() -> bytes:
    """An image with two process units, of which the second one normalises, and an output with a description."""
    made = Schema()
    stats = made.table(2, {0: made.numbers(1, 1, 1), 1: made.numbers(-1, -1, -1)})
    mean, std = made.numbers(127.5, 116.0, 103.53), made.numbers(58.395, 57.12, 57.375)
    scale = made.table(2, {0: mean, 1: std})
    units = made.tables(made.table(2, {}), made.table(2, {0: (BYTE, 1), 1: (OFFSET, scale)}))
    image = made.table(7, {0: made.text("image"), 4: units, 5: (OFFSET, stats)})
    scores = made.table(7, {1: made.text("one of each class")})
    sides = {2: made.tables(image), 3: made.tables(scores)}
    root = made.table(8, {3: made.tables(made.table(8, sides))})
    made.builder.Finish(root, b"M001")
    return bytes(made.builder.Output())


def test_normalisation_ranges_and_descriptions_are_told(tmp_path: Path) -> None:
    x, y = Tensor("x", "f32", [2]), constant("c", np.float32([1, 2]))
    path = saved(tmp_path, sum_of(x, y, metadata={"other": b"abc", "TFLITE_METADATA": metadata()}))
    graph = read_model(path)
    about: Any = graph.rt_info["about"]
    wanted = "(x - mean) / std with mean 127.5,116,103.53, std 58.395,57.12,57.375; from -1,-1,-1 to 1,1,1"
    assert about["input image"] == wanted
    assert about["output 0"] == "one of each class"


def test_damaged_metadata_are_no_error() -> None:
    """Any byte may be another one, and the end may be missing: the result is texts."""
    raw, rng = metadata(), np.random.default_rng(7)
    for cut in range(0, len(raw), 3):
        assert all(isinstance(t, str) for t in tensors_described(raw[:cut]).values())
    for _ in range(2000):
        changed = bytearray(raw)
        for at in rng.integers(0, len(raw), 3):
            changed[at] = rng.integers(0, 256)
        assert all(isinstance(t, str) and len(t) < 10_000 for t in tensors_described(bytes(changed)).values())
