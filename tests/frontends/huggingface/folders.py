"""Folders of small language models: safetensors, whose weights follow from the names of tensors, and config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
INTEGERS: dict[np.dtype[Any], str] = {
    np.dtype(np.int32): "I32",
    np.dtype(np.int64): "I64",
    np.dtype(np.int8): "I8",
    np.dtype(np.uint8): "U8",
}
KINDS = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}


def weight(name: str, shape: Sequence[int], around: float) -> Array:
    """Return numbers that f16 and bf16 hold. `around`: the middle of the weights of norms."""
    drawn = np.random.default_rng(crc32(name.encode())).standard_normal(tuple(shape))
    norm = "norm" in name or "ln_" in name
    size = 0.1 if norm else 0.25 if len(shape) > 1 else 0.2
    middle = around if norm and not name.endswith("bias") else 0.0
    return (np.rint((drawn * size + middle) * 64).clip(-128, 128) / 64).astype(np.float32)


def safetensors(tensors: Mapping[str, NDArray[np.generic]], kind: str = "F32") -> bytes:
    """Return the bytes of a file; arrays of integers keep their type."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, array in tensors.items():
        stored = INTEGERS.get(array.dtype, kind)
        raw = (array if stored != kind else array.astype(KINDS[kind])).tobytes()
        header[name] = {"dtype": stored, "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def write(
    folder: Path, config: Mapping[str, object], tensors: Mapping[str, NDArray[np.generic]], kind: str = "F32"
) -> Path:
    """Write a folder with its tensors in one file."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors(tensors, kind))
    return folder
