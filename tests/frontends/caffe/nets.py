"""Networks of Caffe as files: text, and weights in the format of protobuf. Needs NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Blobs = Sequence[Any]


def varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number: int, data: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def blob(data: Any, old: bool = False) -> bytes:
    """Return a BlobProto; `old`: with four sizes in fields of their own."""
    sizes = np.shape(data)
    if old:
        head = b"".join(varint(n << 3) + varint(d) for n, d in enumerate((*[1] * (4 - len(sizes)), *sizes), 1))
    else:
        head = field(7, field(1, b"".join(map(varint, sizes))))
    return head + field(5, np.asarray(data, "<f4").tobytes())


def weights(layers: Mapping[str, Blobs], old: bool = False) -> bytes:
    """Return a NetParameter with the blobs of layers; `old`: in the form V1."""
    name, blobs, layer = (4, 6, 2) if old else (1, 7, 100)
    parts = (
        field(layer, field(name, key.encode()) + b"".join(field(blobs, blob(b, old)) for b in given))
        for key, given in layers.items()
    )
    return field(1, b"net") + b"".join(parts)


def inputs_of(shapes: Mapping[str, Sequence[int]]) -> str:
    """Return layers that are inputs."""
    return "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {' '.join(f'dim: {n}' for n in shape)} }} }} }}\n"
        for name, shape in shapes.items()
    )


def layer(kind: str, name: str, bottoms: Sequence[str], tops: Sequence[str], text: str = "") -> str:
    ends = [f'bottom: "{b}"' for b in bottoms] + [f'top: "{t}"' for t in tops]
    return f'layer {{ name: "{name}" type: "{kind}" {" ".join(ends)} {text} }}\n'


def written(folder: Path, text: str, layers: Mapping[str, Blobs], old: bool = False) -> Path:
    """Write both files, and return the path of the weights."""
    (folder / "net.prototxt").write_text(f'name: "net"\n{text}')
    (folder / "net.caffemodel").write_bytes(weights(layers, old))
    return folder / "net.caffemodel"
