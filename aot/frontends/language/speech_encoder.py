"""Graph of Whisper's encoder, with the spectra before it: from samples to the states that the decoder reads.

Input `audio` [windows, samples], 30 s at 16 kHz; there is one window in the first call, none in later ones.

    x = log10(mel(|STFT(audio)|^2))      x = gelu(conv(gelu(conv(x)))) + places      then the layers of the encoder
"""

from __future__ import annotations

from math import log

import numpy as np

from aot.codegen.ir.loops import Var
from aot.frontends.language.encoder_decoder import EncoderStack, Source
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType
from aot.text.library_texts import AUDIO

RATE, FRAME, HOP = 16000, 400, 160  # samples of a second, of a Fourier transform, and between two of them
STATES = 1500  # of a window
SAMPLES = 2 * HOP * STATES  # of a window
LEAST_POWER, RANGE = 1e-10, 8.0  # of spectra; decades that are kept below the greatest power
LINEAR, MEL_OF_LINEAR, MEL_STEP = 1000.0, 15.0, log(6.4) / 27  # Hz up to which mels are linear; mels there; a mel above


class SpeechEncoderStack(EncoderStack):
    """The encoder of a source that is speech: samples of audio."""

    def encode(self, bins: int) -> Source:
        """Add the input and the layers; `bins`: rows of spectra."""
        b, width = self.b, self.config.width
        audio = self._parameter(AUDIO, DType.F32, Var("windows", None, 0), SAMPLES)
        x = b.Transpose(self._spectra(audio, bins), self._integers(0, 2, 1))
        x = self._convolved(x, "conv1", bins, 1)
        x = b.Transpose(self._convolved(x, "conv2", width, 2), self._integers(0, 2, 1))
        x = b.Add(x, self.weights.matrix("enc_position_embd.weight", STATES, width))
        windows = self._size(b.ShapeOf(audio, output_type=DType.I64), 0)
        new = b.Multiply(windows, STATES)
        states = b.Reshape(self.layers(x, None), b.Concat(self._integers(1), new, self._integers(width), axis=0))
        return Source(states, new, self._integers(STATES))

    def _spectra(self, audio: OutPort, bins: int) -> OutPort:
        """Return the spectra [windows, 3000, bins], as log10 of powers."""
        b, half = self.b, FRAME // 2
        padded = b.Pad(audio, self._integers(0, half), self._integers(0, half), pad_mode=PadMode.REFLECT)
        window = b.const(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME), DType.F32)
        port = b.STFT(padded, window, self._integer(FRAME), self._integer(HOP))
        power = b.ReduceSum(b.Multiply(port, port), self._integers(-1))
        power = self._slice(power, 0, 2 * STATES, axis=1)
        mels = b.MatMul(power, b.const(mel_filters(bins), DType.F32))
        decades = b.Multiply(b.Log(b.Maximum(mels, LEAST_POWER)), 1 / log(10))
        top = b.ReduceMax(decades, self._integers(1, 2), keep_dims=True)
        return b.Multiply(b.Add(b.Maximum(decades, b.Subtract(top, RANGE)), 4.0), 0.25)

    def _convolved(self, x: OutPort, name: str, channels: int, stride: int) -> OutPort:
        b, width = self.b, self.config.width
        kernel = b.const(self.weights.floats(f"{name}.weight", width, channels, 3), DType.F32)
        x = b.Convolution(x, kernel, strides=(stride,), pads_begin=(1,), pads_end=(1,), dilations=(1,))
        bias = b.const(self.weights.floats(f"{name}.bias", width)[:, None], DType.F32)
        return self._activated(b.Add(x, bias), self.config.activation)


def mel_filters(bins: int) -> Array:
    """Return the shares [frequencies, bins] of powers that bands of equal width in mels have, by Slaney's scale."""
    most = MEL_OF_LINEAR + log(RATE / 2 / LINEAR) / MEL_STEP
    mels = np.linspace(0, most, bins + 2)
    linear = mels * LINEAR / MEL_OF_LINEAR
    edges = np.where(mels < MEL_OF_LINEAR, linear, LINEAR * np.exp(MEL_STEP * (mels - MEL_OF_LINEAR)))
    frequencies = np.linspace(0, RATE / 2, FRAME // 2 + 1)[:, None]
    up = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(up, down)) * (2 / (edges[2:] - edges[:-2]))
