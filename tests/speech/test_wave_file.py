"""WAV files: channels, rates, and files that are damaged or of another kind."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest

from aot.runtime.errors import CorruptError, UnsupportedError
from aot.speech.wave_file import resampled, samples_of


def written(data: bytes, channels: int = 1, width: int = 2, rate: int = 16000) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(data)
    return stream.getvalue()


def test_channels_are_added_up() -> None:
    data = np.array([[100, 300], [-32768, -32768]], "<i2").tobytes()
    found = samples_of(io.BytesIO(written(data, channels=2)), "a.wav", 16000)
    np.testing.assert_array_equal(found, np.array([200 / 32768, -1], np.float32))


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000, 11025])
def test_tones_stay_at_other_rates(rate: int) -> None:
    """A tone that both rates hold stays; one that the other rate does not hold is gone."""
    seconds = np.arange(rate) / rate
    found = resampled(np.sin(2 * np.pi * 1000 * seconds).astype(np.float32), rate, 16000)
    wanted = np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    assert len(found) == 16000
    np.testing.assert_allclose(found[200:-200], wanted[200:-200], atol=2e-3)
    if rate > 40000:
        high = resampled(np.sin(2 * np.pi * 12000 * seconds).astype(np.float32), rate, 16000)
        assert np.abs(high[200:-200]).max() < 2e-3


@pytest.mark.parametrize(
    ("data", "error", "rule"),
    [
        (written(b"\0" * 9, width=3), UnsupportedError, "16-bit PCM can be read, got 24 bits"),
        (b"ID3" + b"\0" * 99, UnsupportedError, "WAV of 16-bit PCM can be read, got"),
        (written(b"\0" * 8)[:20], CorruptError, "a file that ends in a header"),
        (written(b"\0" * 8)[:36], CorruptError, "can be read, got fmt chunk and/or data chunk missing"),
        (written(b"\0" * 8)[:20] + b"\7" + written(b"\0" * 8)[21:], UnsupportedError, "got unknown format: 7"),
        (written(b"\0" * 8)[:24] + struct.pack("<I", 0) + written(b"\0" * 8)[28:], CorruptError, "1000 to 768000 Hz"),
    ],
)
def test_other_files_are_refused(data: bytes, error: type[Exception], rule: str) -> None:
    with pytest.raises(error, match=rule):
        samples_of(io.BytesIO(data), "a.wav", 16000)


def test_a_file_that_ends_early_has_the_samples_that_are_there() -> None:
    whole = written(np.arange(50, dtype="<i2").tobytes())
    assert len(samples_of(io.BytesIO(whole[:-7]), "a.wav", 16000)) == 46
