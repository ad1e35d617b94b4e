"""WAV files of 16-bit PCM: read at any rate with any number of channels, as one channel of another rate; written."""

from __future__ import annotations

import io
import wave
from math import ceil, gcd
from pathlib import Path
from typing import BinaryIO

import numpy as np

from aot.ir.types import Array
from aot.runtime.atomic import replacing
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import open_file

BYTES = 2  # bytes of a sample
RULE = "audio in WAV of 16-bit PCM can be read"
LEAST_RATE, MAX_RATE, MAX_CHANNELS = 1000, 768000, 64
CROSSINGS = 16  # zero crossings on each side of the low-pass filter


def read_wave(path: Path, rate: int) -> Array:
    """Return the samples of a file, -1 to 1, at a rate: the mean of its channels.

    CorruptError for a damaged file, UnsupportedError for one that is no WAV of 16-bit PCM.
    """
    with open_file(path, "audio") as stream:
        return samples_of(stream, path.name, rate)


def samples_of(stream: BinaryIO, name: str, rate: int) -> Array:
    """Return the samples of a stream that holds a WAV file, named `name` in errors."""
    head = stream.read(12)
    stream.seek(0)
    is_wave = head[:4] + head[8:] == b"RIFFWAVE"
    try:
        with wave.open(stream) as file:
            channels, width, own_rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except wave.Error as error:
        text, kind = str(error), CorruptError if is_wave else UnsupportedError
        raise (UnsupportedError if "unknown" in text else kind)(f"{name}: {RULE}, got {text}") from None
    except EOFError:
        raise CorruptError(f"{name}: must be audio in WAV, got a file that ends in a header") from None
    if width != BYTES:
        raise UnsupportedError(f"{name}: {RULE}, got {8 * width} bits")
    if not (LEAST_RATE <= own_rate <= MAX_RATE and 1 <= channels <= MAX_CHANNELS):
        bounds = f"{LEAST_RATE} to {MAX_RATE} Hz and 1 to {MAX_CHANNELS} channels"
        raise CorruptError(f"{name}: must have {bounds}, got {own_rate} Hz and {channels}")
    frames = len(data) // (BYTES * channels)
    integers = np.frombuffer(data, "<i2", frames * channels).reshape(frames, channels)
    return resampled(integers.mean(1, dtype=np.float32) / np.float32(1 << 15), own_rate, rate)


def write_wave(path: Path, samples: Array, rate: int) -> None:
    """Write samples, -1 to 1, of one channel; what lies beyond is cut off. OSError if no file can be written."""
    with replacing(path) as temporary:
        temporary.write_bytes(wave_of(samples, rate))


def wave_of(samples: Array, rate: int) -> bytes:
    """Return the bytes of a file with these samples of one channel."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, BYTES, rate, len(samples), "NONE", ""))
        file.writeframes(pcm(samples))
    return stream.getvalue()


def pcm(samples: Array) -> bytes:
    """Return samples as 16-bit integers, low bytes first."""
    return np.rint(np.clip(samples, -1, 1) * ((1 << 15) - 1)).astype("<i2").tobytes()


def resampled(samples: Array, rate: int, target_rate: int) -> Array:
    """Return samples at another rate, without frequencies that it cannot hold: by a sinc with a Hann window."""
    if rate == target_rate:
        return samples
    common = gcd(rate, target_rate)
    up, down = target_rate // common, rate // common
    reach = ceil(CROSSINGS * max(1, down / up))
    taps = np.arange(1 - reach, reach + 1)
    count = ceil(len(samples) * up / down)
    padded = np.pad(samples, (reach, 2 * reach + down))
    near, result = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach), np.empty(count, np.float32)
    band = min(1.0, up / down)
    for first in range(min(up, count)):  # outputs between the same two samples, that lie at the same place there
        sample, phase = divmod(first * down, up)
        distance = taps - phase / up
        shape = band * np.sinc(band * distance) * (0.5 + 0.5 * np.cos(np.pi * distance / (reach + 1)))
        rows = near[sample + 1 :: down][: len(result[first::up])]
        result[first::up] = rows @ (shape / shape.sum()).astype(np.float32)
    return result
