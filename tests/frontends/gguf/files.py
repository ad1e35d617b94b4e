"""Writes small GGUF files with random weights, and says what their tensors mean, number by number."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TYPES = {  # name: number, elements of a block, bytes of a block, places of halves in a block
    "F32": (0, 1, 4, ()),
    "F16": (1, 1, 2, ()),
    "Q4_0": (2, 32, 18, (0,)),
    "Q4_1": (3, 32, 20, (0, 2)),
    "Q5_0": (6, 32, 22, (0,)),
    "Q5_1": (7, 32, 24, (0, 2)),
    "Q8_0": (8, 32, 34, (0,)),
    "Q4_K": (12, 256, 144, (0, 2)),
    "Q5_K": (13, 256, 176, (0, 2)),
    "Q6_K": (14, 256, 210, (208,)),
    "BF16": (30, 1, 2, ()),
    "Q2_K": (10, 256, 84, (80, 82)),
    "Q3_K": (11, 256, 110, (108,)),
    "IQ4_NL": (20, 32, 18, (0,)),
    "IQ4_XS": (23, 256, 136, (0,)),
    "TQ1_0": (34, 256, 54, (52,)),
    "TQ2_0": (35, 256, 66, (64,)),
    "MXFP4": (39, 32, 17, ()),
}
SIZES = {
    "Q4_0": 0.02,
    "Q4_1": 0.02,
    "Q5_0": 0.01,
    "Q5_1": 0.01,
    "Q8_0": 0.002,
    "Q4_K": 4e-4,
    "Q5_K": 2e-4,
    "Q6_K": 6e-5,
    "Q2_K": 0.004,
    "Q3_K": 0.0015,
    "IQ4_NL": 0.0016,
    "IQ4_XS": 6e-5,
    "TQ1_0": 0.1,
    "TQ2_0": 0.1,
}
IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
MXFP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def random_bytes(kind: str, shape: tuple[int, ...], seed: int) -> bytes:
    """Blocks with any numbers, and scales that make elements of about 0.1; some scales are negative or zero."""
    rng = np.random.default_rng(seed)
    _, elements, size, halves = TYPES[kind]
    count = int(np.prod(shape)) // elements
    if kind in ("F32", "F16", "BF16"):
        data = (0.2 * rng.standard_normal(count)).astype(np.float32)
        match kind:
            case "F16":
                return data.astype("<f2").tobytes()
            case "BF16":
                return (data.view(np.uint32) >> 16).astype("<u2").tobytes()
            case _:
                return data.tobytes()
    blocks = rng.integers(0, 256, (count, size), np.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = rng.integers(118, 125, count)
    for n, at in enumerate(halves):
        signs = rng.choice([-1.0, 1.0, 1.0], count) if kind in ("Q4_0", "Q5_0", "Q6_K") else np.ones(count)
        scale = (
            SIZES[kind] * rng.uniform(0.5, 1.5, count) * (-7.5 if n and kind[1] == "4" and kind[3] != "K" else signs)
        )
        scale[rng.random(count) < 0.05] = 0
        blocks[:, at : at + 2] = scale.astype("<f2")[:, None].view(np.uint8)
    return blocks.tobytes()


def meaning(kind: str, raw: bytes) -> list[float]:
    """The elements of a tensor, as ggml's loops over blocks make them."""
    _, elements, size, _ = TYPES[kind]
    if kind in ("F32", "F16"):
        return np.frombuffer(raw, "<f4" if kind == "F32" else "<f2").astype(np.float64).tolist()
    if kind == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64).tolist()
    found: list[float] = []
    for at in range(0, len(raw), size):
        found += _block(kind, raw[at : at + size], elements)
    return found


def _half(b: bytes, at: int) -> float:
    return struct.unpack_from("<e", b, at)[0]


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _few(kind: str, b: bytes) -> list[float] | None:
    """The elements of a block of few bits, of three values, or of values in a table; None for other kinds."""
    match kind:
        case "Q2_K":
            d, m = _half(b, 80), _half(b, 82)
            numbers = [b[16 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3 for i in range(256)]
            return [d * (b[i // 16] & 15) * n - m * (b[i // 16] >> 4) for i, n in enumerate(numbers)]
        case "Q3_K":
            found: list[float] = []
            for i in range(256):
                j = i // 16
                s = (b[96 + j % 8] >> 4 * (j // 8) & 15) | (b[104 + j % 4] >> 2 * (j // 4) & 3) << 4
                n = b[32 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
                found.append(_half(b, 108) * (s - 32) * (n - (0 if b[i % 32] >> i // 32 & 1 else 4)))
            return found
        case "IQ4_NL":
            return [_half(b, 0) * IQ4[b[2 + i % 16] >> 4 * (i // 16) & 15] for i in range(32)]
        case "IQ4_XS":
            high = b[2] | b[3] << 8
            scales = [(b[4 + j // 2] >> 4 * (j % 2) & 15) | (high >> 2 * j & 3) << 4 for j in range(8)]
            places = [b[8 + 16 * (i // 32) + i % 16] >> 4 * (i % 32 // 16) & 15 for i in range(256)]
            return [_half(b, 0) * (scales[i // 32] - 32) * IQ4[n] for i, n in enumerate(places)]
        case "MXFP4":
            numbers = [b[1 + i % 16] >> 4 * (i // 16) & 15 for i in range(32)]
            return [2.0 ** (b[0] - 127) * MXFP4[n & 7] * (-1 if n & 8 else 1) for n in numbers]
        case "TQ2_0":
            return [_half(b, 64) * ((b[32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3) - 1) for i in range(256)]
        case "TQ1_0":
            places = [(i % 32, i // 32) for i in range(160)] + [(32 + i % 16, i // 16) for i in range(80)]
            places += [(48 + i % 4, i // 4) for i in range(16)]
            return [_half(b, 52) * (((b[at] * 3**n & 255) * 3 >> 8) - 1) for at, n in places]
    return None


def _block(kind: str, b: bytes, elements: int) -> list[float]:
    few = _few(kind, b)
    if few is not None:
        return few
    d, found = _half(b, 208 if kind == "Q6_K" else 0), [0.0] * elements
    if kind == "Q8_0":
        return [d * _signed(v) for v in b[2:]]
    if kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        wide, least = kind[1] == "5", kind[3] == "1"
        start = 2 + 2 * least
        high = int.from_bytes(b[start : start + 4], "little") if wide else 0
        low = b[start + 4 * wide :]
        for i in range(32):
            n = (low[i] & 15 if i < 16 else low[i - 16] >> 4) | (high >> i & 1) << 4
            found[i] = d * n + _half(b, 2) if least else d * (n - (16 if wide else 8))
        return found
    if kind == "Q6_K":
        for i in range(256):
            half, place = divmod(i, 128)
            quarter, k = divmod(place, 32)
            byte = b[64 * half + k + 32 * (quarter % 2)]
            low, high = (byte >> 4 if quarter > 1 else byte & 15), b[128 + 32 * half + k] >> 2 * quarter & 3
            found[i] = d * _signed(b[192 + i // 16]) * ((low | high << 4) - 32)
        return found
    scales = b[4:16]
    for i in range(256):
        j = i // 32
        if j < 4:
            s, m = scales[j] & 63, scales[j + 4] & 63
        else:
            s = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4
            m = (scales[j + 4] >> 4) | (scales[j] >> 6) << 4
        byte = b[(16 if kind == "Q4_K" else 48) + 32 * (j // 2) + i % 32]
        n = byte >> 4 if j % 2 else byte & 15
        n |= (b[16 + i % 32] >> j & 1) << 4 if kind == "Q5_K" else 0
        found[i] = d * s * n - _half(b, 2) * m
    return found


# ---- files


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    match value:
        case bool():
            return struct.pack("<IB", 7, value)
        case int() if 0 <= value < 1 << 32:
            return struct.pack("<II", 4, value)
        case int():
            return struct.pack("<IQ", 10, value) if value >> 32 else struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case list():
            parts = [_value(v) for v in value]
            return struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(parts)) + b"".join(p[4:] for p in parts)
        case _:
            raise TypeError(type(value))


def write(
    path: Path,
    metadata: Mapping[str, object],
    tensors: Mapping[str, tuple[str, tuple[int, ...], bytes | Callable[[], bytes]]],
    version: int = 3,
) -> Path:
    """Write a file; `tensors`: type, shape (outermost first) and bytes of each, or a function that makes them."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(_text(k) + _value(v) for k, v in metadata.items())
    offset = 0
    for name, (kind, shape, raw) in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], TYPES[kind][0], offset)
        size = len(raw) if isinstance(raw, bytes) else prod(shape) // TYPES[kind][1] * TYPES[kind][2]
        offset += size + -size % 32
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for _, _, raw in tensors.values():
            made = raw if isinstance(raw, bytes) else raw()
            file.write(made + bytes(-len(made) % 32))
    return path
