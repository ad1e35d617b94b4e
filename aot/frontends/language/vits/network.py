"""Graph of VITS, which reads a text and speaks it: from tokens to samples of audio.

Inputs `input_ids` [1, length], `scales` [3] (noise of the sound, length of the speech, noise of durations), and
`speaker` [1] where there are several; output `waveform` [1, samples]. Equal inputs give equal audio: noise has fixed
seeds.

    text encoder -> means and deviations of each token, frames of each token -> one column a frame, with noise
    -> flow, backwards -> HiFi-GAN: 256 samples a frame
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from aot.codegen.ir.loops import Var
from aot.frontends.language.vits.durations import Durations
from aot.frontends.language.vits.layers import VitsLayers, same_length
from aot.frontends.language.vits.sound import Sound
from aot.ir.graph import OutPort
from aot.opset.control.infrastructure import Result
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType
from aot.runtime.generation.interface import IDS
from aot.text.library_texts import SCALES, SPEAKER, WAVEFORM

FRAMES_AXIS = 2  # axis of frames in tensors [1, channels, frames]


class Vits(VitsLayers):
    """Builds the network."""

    def build(self) -> None:
        """Add the inputs, the network and the output."""
        b, c = self.b, self.config
        ids = self._parameter(IDS, DType.I64, 1, Var("length", None, 1))
        scales = self._parameter(SCALES, DType.F32, 3)
        noise, length, duration_noise = (self._slice(scales, n, n + 1, axis=0) for n in range(3))
        self.speaker = self._speaker()
        x = self._text(ids)
        stats = self._conv(x, "text_encoder.project", 2 * c.flow_size, c.hidden_size)
        means, logs = (
            self._slice(stats, 0, c.flow_size, axis=1),
            self._slice(stats, c.flow_size, 2 * c.flow_size, axis=1),
        )
        predictor = Durations(self.graph, c, self.weights, self.speaker)
        durations = b.Multiply(b.Exp(predictor.log_frames(x, duration_noise)), length)
        tokens = predictor.token_of_frames(b.Squeeze(b.Ceiling(durations), self._integers(0, 1)))
        means, logs = (b.Gather(y, tokens, self._integer(FRAMES_AXIS)) for y in (means, logs))
        sound = b.Multiply(self._noise("sound", b.ShapeOf(means, output_type=DType.I64)), b.Exp(logs))
        waveform = Sound(self.graph, c, self.weights, self.speaker).waveform(b.Add(means, b.Multiply(sound, noise)))
        waveform.names = (WAVEFORM,)
        self.graph.add(Result(), waveform, name=WAVEFORM).out_port(0).names = (WAVEFORM,)

    def _speaker(self) -> OutPort | None:
        """Return the embedding of the speaker, [1, elements, 1]; None for a network of one speaker."""
        c = self.config
        if c.num_speakers < 2:
            return None
        number = self._parameter(SPEAKER, DType.I64, 1)
        table = self.b.const(
            self.weights.floats("embed_speaker.weight", c.num_speakers, c.speaker_embedding_size), DType.F32
        )
        return self.b.Unsqueeze(self._rows(table, number), self._integers(2))

    def _text(self, ids: OutPort) -> OutPort:
        """Return the states of the tokens, [1, channels, length]."""
        b, c = self.b, self.config
        table = self.weights.floats("text_encoder.embed_tokens.weight", c.vocab_size, c.hidden_size)
        rows = self._rows(b.const(table * np.float32(sqrt(c.hidden_size)), DType.F32), ids)
        x = b.Transpose(rows, self._integers(0, 2, 1))
        near = self._near(x)
        for n in range(c.num_hidden_layers):
            at = f"text_encoder.encoder.layers.{n}"
            x = self._norm(b.Add(x, self._attended(x, f"{at}.attention", near)), f"{at}.layer_norm", c.hidden_size)
            x = self._norm(b.Add(x, self._mlp(x, f"{at}.feed_forward")), f"{at}.final_layer_norm", c.hidden_size)
        return x

    def _mlp(self, x: OutPort, at: str) -> OutPort:
        c = self.config
        x = self.b.Relu(self._conv(x, f"{at}.conv_1", c.ffn_dim, c.hidden_size, c.ffn_kernel_size))
        return self._conv(x, f"{at}.conv_2", c.hidden_size, c.ffn_dim, c.ffn_kernel_size)

    def _near(self, x: OutPort) -> tuple[OutPort, OutPort]:
        """Return where a distance of tokens lies in a table, and a near token in a padded row; each for all heads.

        Rows of the table: tokens far before, each of the `window_size` before, the token itself, those after it.
        """
        b, window, heads = self.b, self.config.window_size, self._integers(self.config.num_attention_heads)
        length = self._length(x)
        rows, columns = (b.Unsqueeze(self._range(length), self._integers(n)) for n in (1, 0))
        distances = b.Subtract(columns, rows)
        bounded = b.Maximum(b.Minimum(distances, self._integer(window + 1)), self._integer(-window - 1))
        positions = b.Broadcast(b.Add(bounded, self._integer(window + 1)), b.Concat(heads, length, length, axis=0))
        tokens = b.Add(rows, b.const(np.arange(2 * window + 1)[None], DType.I64))
        shape = b.Concat(heads, length, self._integers(2 * window + 1), axis=0)
        return positions, b.Broadcast(tokens, shape)

    def _attended(self, x: OutPort, at: str, near: tuple[OutPort, OutPort]) -> OutPort:
        """Attention with additional scores and values for the distances of near tokens."""
        b, c, window = self.b, self.config, self.config.window_size
        key = c.hidden_size // c.num_attention_heads
        q, k, v = (self._heads(x, f"{at}.{part}_proj") for part in "qkv")
        q = b.Multiply(b.Transpose(q, self._integers(0, 2, 1)), key**-0.5)
        of_keys, of_values = (self.weights.floats(f"{at}.emb_rel_{part}", 1, 2 * window + 1, key)[0] for part in "kv")
        table = b.const(np.pad(of_keys, ((1, 1), (0, 0))), DType.F32)
        scores = b.Add(b.MatMul(q, k), b.GatherElements(b.MatMul(q, table, transpose_b=True), near[0], axis=2))
        shares = b.Softmax(scores, axis=-1)
        sides = self._integers(0, 0, window)
        of_near = b.GatherElements(b.Pad(shares, sides, sides, pad_mode=PadMode.CONSTANT), near[1], axis=2)
        mixed = b.Add(b.MatMul(shares, v, transpose_b=True), b.MatMul(of_near, b.const(of_values, DType.F32)))
        joined = b.Reshape(b.Transpose(mixed, self._integers(0, 2, 1)), self._integers(1, c.hidden_size, -1))
        return self._product(joined, f"{at}.out_proj")

    def _heads(self, x: OutPort, name: str) -> OutPort:
        """Return queries, keys or values: [1, channels, length] -> [heads, elements, length]."""
        heads = self.config.num_attention_heads
        return self.b.Reshape(self._product(x, name), self._integers(heads, self.config.hidden_size // heads, -1))

    def _product(self, x: OutPort, name: str) -> OutPort:
        width = self.config.hidden_size
        weights = self.b.const(self.weights.floats(f"{name}.weight", width, width)[..., None], DType.F32)
        return self._biased(self.b.Convolution(x, weights, **same_length(1, 1)), name, width)
