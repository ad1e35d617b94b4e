"""Graph of VITS, which reads a text and speaks it: from tokens to samples of audio.

Inputs `input_ids` [1, length], `scales` [3] (noise of the sound, length of the speech, noise of durations), and
`speaker` [1] where there are several; output `waveform` [1, samples]. Equal inputs give equal audio: noise has fixed
seeds.

    text encoder -> means and deviations of each token, frames of each token -> one column a frame, with noise
    -> flow, backwards -> HiFi-GAN: 256 samples a frame
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt
from typing import Protocol

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Var
from aot.frontends.language.layers import Parts
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.opset.control.infrastructure import Result
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType
from aot.runtime.generation.interface import IDS
from aot.text.library_texts import SCALES, SPEAKER, WAVEFORM

SEEDS = {"durations": 1, "sound": 2}  # of noise
LEAST_BIN, LEAST_SLOPE = 1e-3, 1e-3  # of splines
EDGE = 1e-6  # added to the last place of a spline, so that its end belongs to the last bin
SLOPE = 0.01  # of the last LeakyRelu of HiFi-GAN
FRAMES_AXIS = 2  # of values [1, channels, frames]


@dataclass(frozen=True, slots=True)
class VitsConfig:
    """Sizes of the network, by the names of its config.json."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    window_size: int
    ffn_dim: int
    ffn_kernel_size: int
    flow_size: int
    layer_norm_eps: float
    use_stochastic_duration_prediction: bool
    duration_predictor_num_flows: int
    duration_predictor_flow_bins: int
    duration_predictor_tail_bound: float
    duration_predictor_kernel_size: int
    duration_predictor_filter_channels: int
    depth_separable_num_layers: int
    prior_encoder_num_flows: int
    prior_encoder_num_wavenet_layers: int
    wavenet_kernel_size: int
    wavenet_dilation_rate: int
    upsample_initial_channel: int
    upsample_rates: tuple[int, ...]
    upsample_kernel_sizes: tuple[int, ...]
    resblock_kernel_sizes: tuple[int, ...]
    resblock_dilation_sizes: tuple[tuple[int, ...], ...]
    leaky_relu_slope: float
    num_speakers: int
    speaker_embedding_size: int


class VitsWeights(Protocol):
    """The tensors of a network, by the names of its file."""

    def floats(self, name: str, *shape: int) -> Array:
        """Return a tensor; that of a weight-normalised layer has its norm in it."""
        ...

    def has(self, name: str) -> bool:
        """True if there is a tensor with the name."""
        ...


class Vits(Parts):
    """Builds the network."""

    def __init__(self, graph: Graph, config: VitsConfig, weights: VitsWeights) -> None:
        super().__init__(graph)
        self.config, self.weights = config, weights

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
        durations = b.Multiply(b.Exp(self._durations(x, duration_noise)), length)
        tokens = self._token_of_frames(b.Squeeze(b.Ceiling(durations), self._integers(0, 1)))
        means, logs = (b.Gather(y, tokens, self._integer(FRAMES_AXIS)) for y in (means, logs))
        sound = b.Multiply(self._noise("sound", b.ShapeOf(means, output_type=DType.I64)), b.Exp(logs))
        x = self._flow(b.Add(means, b.Multiply(sound, noise)))
        made = b.Squeeze(self._audio(x), self._integers(1))
        made.names = (WAVEFORM,)
        self.graph.add(Result(), made, name=WAVEFORM).out_port(0).names = (WAVEFORM,)

    # ---- parts

    def _speaker(self) -> OutPort | None:
        """Return what the network knows of the speaker, [1, elements, 1]; None for a single one."""
        c = self.config
        if c.num_speakers < 2:
            return None
        number = self._parameter(SPEAKER, DType.I64, 1)
        table = self.b.const(
            self.weights.floats("embed_speaker.weight", c.num_speakers, c.speaker_embedding_size), DType.F32
        )
        return self.b.Unsqueeze(self._rows(table, number), self._integers(2))

    def _conditioned(self, x: OutPort, name: str, channels: int) -> OutPort:
        """Add what a layer makes of the speaker."""
        if self.speaker is None:
            return x
        return self.b.Add(x, self._conv(self.speaker, name, channels, self.config.speaker_embedding_size))

    def _conv(self, x: OutPort, name: str, rows: int, columns: int, kernel: int = 1, dilation: int = 1) -> OutPort:
        """Convolve [1, channels, length]; the length stays."""
        weights = self.b.const(self.weights.floats(f"{name}.weight", rows, columns, kernel), DType.F32)
        return self._biased(self.b.Convolution(x, weights, **_same(kernel, dilation)), name, rows)

    def _biased(self, x: OutPort, name: str, rows: int) -> OutPort:
        if not self.weights.has(f"{name}.bias"):
            return x
        return self.b.Add(x, self.b.const(self.weights.floats(f"{name}.bias", rows)[:, None], DType.F32))

    def _norm(self, x: OutPort, name: str, channels: int) -> OutPort:
        """LayerNorm over the channels of [1, channels, length]."""
        b, axis = self.b, self._integers(1)
        x = b.Subtract(x, b.ReduceMean(x, axis, keep_dims=True))
        scale = b.Sqrt(b.Add(b.ReduceMean(b.Multiply(x, x), axis, keep_dims=True), self.config.layer_norm_eps))
        weights = b.const(self.weights.floats(f"{name}.weight", channels)[:, None], DType.F32)
        return self._biased(b.Multiply(b.Divide(x, scale), weights), name, channels)

    def _length(self, x: OutPort) -> OutPort:
        return self._size(self.b.ShapeOf(x, output_type=DType.I64), 2)

    def _range(self, count: OutPort) -> OutPort:
        end = self.b.Squeeze(count, self._integers(0))
        return self.b.Range(self._integer(0), end, self._integer(1), output_type=DType.I64)

    def _noise(self, name: str, shape: OutPort) -> OutPort:
        """Return normal random numbers, by Box and Muller of uniform ones."""
        b, (low, high) = self.b, (self.b.const(np.float32(n), DType.F32) for n in (0, 1))
        first, second = (
            b.RandomUniform(shape, low, high, output_type=DType.F32, global_seed=SEEDS[name], op_seed=n) for n in (1, 2)
        )
        radius = b.Sqrt(b.Multiply(b.Log(b.Subtract(b.const(np.float32(1), DType.F32), first)), -2.0))
        return b.Multiply(radius, b.Cos(b.Multiply(second, 2 * pi)))

    # ---- text

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

        Rows of the table: tokens far before, each of the `window_size` before, the token itself, those behind it.
        """
        b, window, heads = self.b, self.config.window_size, self._integers(self.config.num_attention_heads)
        length = self._length(x)
        rows, columns = (b.Unsqueeze(self._range(length), self._integers(n)) for n in (1, 0))
        distances = b.Subtract(columns, rows)
        bounded = b.Maximum(b.Minimum(distances, self._integer(window + 1)), self._integer(-window - 1))
        places = b.Broadcast(b.Add(bounded, self._integer(window + 1)), b.Concat(heads, length, length, axis=0))
        tokens = b.Add(rows, b.const(np.arange(2 * window + 1)[None], DType.I64))
        shape = b.Concat(heads, length, self._integers(2 * window + 1), axis=0)
        return places, b.Broadcast(tokens, shape)

    def _attended(self, x: OutPort, at: str, near: tuple[OutPort, OutPort]) -> OutPort:
        """Attention whose scores and values have parts for the distances of near tokens."""
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
        return self._biased(self.b.Convolution(x, weights, **_same(1, 1)), name, width)

    # ---- durations

    def _durations(self, x: OutPort, noise: OutPort) -> OutPort:
        """Return the logarithm of the frames of each token, [1, 1, length]."""
        b, c, at = self.b, self.config, "duration_predictor"
        width, kernel = c.duration_predictor_filter_channels, c.duration_predictor_kernel_size
        if not c.use_stochastic_duration_prediction:
            x, columns = self._conditioned(x, f"{at}.cond", c.hidden_size), c.hidden_size
            for n in (1, 2):
                x = b.Relu(self._conv(x, f"{at}.conv_{n}", width, columns, kernel))
                x, columns = self._norm(x, f"{at}.norm_{n}", width), width
            return self._conv(x, f"{at}.proj", 1, width)
        width = c.hidden_size
        x = self._conditioned(self._conv(x, f"{at}.conv_pre", width, width), f"{at}.cond", width)
        x = self._conv(self._separable(x, f"{at}.conv_dds"), f"{at}.conv_proj", width, width)
        shape = b.Concat(self._integers(1, 2), self._length(x), axis=0)
        pair = b.Multiply(self._noise("durations", shape), noise)
        first, second = self._slice(pair, 0, 1, axis=1), self._slice(pair, 1, 2, axis=1)
        # backwards, each flow behind an exchange of the pair; training has one more, which the durations do not need
        for n in range(c.duration_predictor_num_flows, 1, -1):
            first, second = second, first
            second = self._spline_flow(first, second, x, f"{at}.flows.{n}")
        shifts, logs = (self.weights.floats(f"{at}.flows.0.{part}", 2, 1) for part in ("translate", "log_scale"))
        return b.Multiply(b.Subtract(second, shifts[:1]), np.exp(-logs[:1]))

    def _separable(self, x: OutPort, at: str, condition: OutPort | None = None) -> OutPort:
        """Add what depthwise convolutions, each with a product behind it, compute."""
        b, c = self.b, self.config
        width, kernel = c.hidden_size, c.duration_predictor_kernel_size
        x = x if condition is None else b.Add(x, condition)
        for n in range(c.depth_separable_num_layers):
            name = f"{at}.convs_dilated.{n}"
            weights = self.weights.floats(f"{name}.weight", width, 1, kernel)[:, None]
            y = b.GroupConvolution(x, b.const(weights, DType.F32), **_same(kernel, kernel**n))
            y = b.Gelu(self._norm(self._biased(y, name, width), f"{at}.norms_1.{n}", width))
            y = self._norm(self._conv(y, f"{at}.convs_pointwise.{n}", width, width), f"{at}.norms_2.{n}", width)
            x = b.Add(x, b.Gelu(y))
        return x

    def _spline_flow(self, first: OutPort, second: OutPort, condition: OutPort, at: str) -> OutPort:
        """Return `second` moved back along a spline whose places come from `first` and the text."""
        b, c, width = self.b, self.config, self.config.hidden_size
        bins = c.duration_predictor_flow_bins
        x = self._separable(self._conv(first, f"{at}.conv_pre", width, 1), f"{at}.conv_dds", condition)
        x = b.Transpose(self._conv(x, f"{at}.conv_proj", 3 * bins - 1, width), self._integers(0, 2, 1))
        parts = [self._slice(x, n * bins, min((n + 1) * bins, 3 * bins - 1), axis=2) for n in range(3)]
        scale = width**-0.5
        y = b.Transpose(second, self._integers(0, 2, 1))
        found = self._spline(y, b.Multiply(parts[0], scale), b.Multiply(parts[1], scale), parts[2])
        return b.Transpose(found, self._integers(0, 2, 1))

    def _spline(self, y: OutPort, widths: OutPort, heights: OutPort, slopes: OutPort) -> OutPort:
        """Return where the rational quadratic spline has the values y [1, length, 1]; outside of its ends, y itself.

        `widths`, `heights` [1, length, bins] and `slopes` [1, length, bins - 1] are not bounded yet.
        """
        b, bound, bins = self.b, self.config.duration_predictor_tail_bound, self.config.duration_predictor_flow_bins
        sides = self._integers(0, 0, 1)
        ends = b.Pad(slopes, sides, sides, log(np.expm1(1 - LEAST_SLOPE)), pad_mode=PadMode.CONSTANT)
        slopes = b.Add(b.SoftPlus(ends), LEAST_SLOPE)
        (left, wide), (low, high) = self._bins(widths), self._bins(heights)
        # the bin of y is the last one that begins at it or below
        begun = b.Convert(b.GreaterEqual(y, low), destination_type=DType.I64)
        place = b.Subtract(b.ReduceSum(begun, self._integers(2), keep_dims=True), self._integer(1))
        place = b.Maximum(b.Minimum(place, self._integer(bins - 1)), self._integer(0))

        def at(x: OutPort, further: int = 0) -> OutPort:
            return b.GatherElements(x, b.Add(place, self._integer(further)) if further else place, axis=2)

        left, wide, low, high, begin, end = at(left), at(wide), at(low), at(high), at(slopes), at(slopes, 1)
        rise, above = b.Divide(high, wide), b.Subtract(y, low)
        bend = b.Multiply(above, b.Subtract(b.Add(begin, end), b.Multiply(rise, 2.0)))
        p = b.Add(b.Multiply(high, b.Subtract(rise, begin)), bend)
        q = b.Subtract(b.Multiply(high, begin), bend)
        r = b.Negative(b.Multiply(rise, above))
        root = b.Sqrt(b.Subtract(b.Multiply(q, q), b.Multiply(b.Multiply(p, r), 4.0)))
        share = b.Divide(b.Multiply(r, 2.0), b.Negative(b.Add(q, root)))
        inside = b.LessEqual(b.Abs(y), b.const(np.float32(bound), DType.F32))
        return b.Select(inside, b.Add(b.Multiply(share, wide), left), y)

    def _bins(self, x: OutPort) -> tuple[OutPort, OutPort]:
        """Return where bins begin, and their widths, from end to end of the spline."""
        b, bound, bins = self.b, self.config.duration_predictor_tail_bound, self.config.duration_predictor_flow_bins
        shares = b.Add(b.Multiply(b.Softmax(x, axis=-1), 1 - LEAST_BIN * bins), LEAST_BIN)
        ends = b.Subtract(b.Multiply(b.CumSum(shares, self._integer(2)), 2 * bound), bound)
        inner, one = self._slice(ends, 0, bins - 1, axis=2), self._integers(0, 0, 1)
        none = self._integers(0, 0, 0)
        begins = b.Pad(inner, one, none, -bound, pad_mode=PadMode.CONSTANT)
        whole = b.Pad(inner, none, one, bound, pad_mode=PadMode.CONSTANT)
        return begins, b.Subtract(whole, begins)

    def _token_of_frames(self, durations: OutPort) -> OutPort:
        """Return the token of each frame, for the frames of each token; one frame for a text without any."""
        b = self.b
        ends = b.CumSum(b.Convert(durations, destination_type=DType.I64), self._integer(0))
        count = b.Maximum(b.ReduceMax(ends, self._integers(0), keep_dims=True), self._integer(1))
        frames = b.Unsqueeze(self._range(count), self._integers(1))
        passed = b.LessEqual(b.Unsqueeze(ends, self._integers(0)), frames)
        tokens = b.ReduceSum(b.Convert(passed, destination_type=DType.I64), self._integers(1))
        last = b.Subtract(b.ShapeOf(durations, output_type=DType.I64), self._integer(1))
        return b.Minimum(tokens, last)

    # ---- sound

    def _flow(self, x: OutPort) -> OutPort:
        """Return what the flow makes of normal numbers, [1, channels, frames], backwards."""
        b, c, half = self.b, self.config, self.config.flow_size // 2
        for n in reversed(range(c.prior_encoder_num_flows)):
            at = f"flow.flows.{n}"
            x = b.Gather(x, self._integers(*reversed(range(c.flow_size))), self._integer(1))
            first, second = self._slice(x, 0, half, axis=1), self._slice(x, half, c.flow_size, axis=1)
            y = self._wavenet(self._conv(first, f"{at}.conv_pre", c.hidden_size, half), f"{at}.wavenet")
            shift = self._conv(y, f"{at}.conv_post", half, c.hidden_size)
            x = b.Concat(first, b.Subtract(second, shift), axis=1)
        return x

    def _wavenet(self, x: OutPort, at: str) -> OutPort:
        b, c, width = self.b, self.config, self.config.hidden_size
        layers, made = c.prior_encoder_num_wavenet_layers, list[OutPort]()
        condition = None
        if self.speaker is not None:
            condition = self._conv(self.speaker, f"{at}.cond_layer", 2 * width * layers, c.speaker_embedding_size)
        for n in range(layers):
            dilation = c.wavenet_dilation_rate**n
            y = self._conv(x, f"{at}.in_layers.{n}", 2 * width, width, c.wavenet_kernel_size, dilation)
            if condition is not None:
                y = b.Add(y, self._slice(condition, 2 * width * n, 2 * width * (n + 1), axis=1))
            gated = b.Multiply(
                b.Tanh(self._slice(y, 0, width, axis=1)), b.Sigmoid(self._slice(y, width, 2 * width, axis=1))
            )
            last = n == layers - 1
            y = self._conv(gated, f"{at}.res_skip_layers.{n}", width if last else 2 * width, width)
            made.append(y if last else self._slice(y, width, 2 * width, axis=1))
            x = x if last else b.Add(x, self._slice(y, 0, width, axis=1))
        return self._sum(made)

    def _sum(self, values: Sequence[OutPort]) -> OutPort:
        found = values[0]
        for value in values[1:]:
            found = self.b.Add(found, value)
        return found

    def _leaky(self, x: OutPort, slope: float) -> OutPort:
        return self.b.PRelu(x, self.b.const(np.array([slope], np.float32), DType.F32))

    def _audio(self, x: OutPort) -> OutPort:
        """HiFi-GAN: samples [1, 1, samples] of columns [1, channels, frames]."""
        b, c = self.b, self.config
        channels = c.upsample_initial_channel
        x = self._conditioned(self._conv(x, "decoder.conv_pre", channels, c.flow_size, 7), "decoder.cond", channels)
        for n, (rate, kernel) in enumerate(zip(c.upsample_rates, c.upsample_kernel_sizes, strict=True)):
            name, half = f"decoder.upsampler.{n}", channels // 2
            weights = b.const(self.weights.floats(f"{name}.weight", channels, half, kernel), DType.F32)
            pad = ((kernel - rate) // 2,)
            x = b.ConvolutionBackpropData(
                self._leaky(x, c.leaky_relu_slope),
                weights,
                strides=(rate,),
                pads_begin=pad,
                pads_end=pad,
                dilations=(1,),
            )
            x, channels = self._biased(x, name, half), half
            count = len(c.resblock_kernel_sizes)
            x = b.Multiply(self._sum([self._residual(x, n * count + k, channels) for k in range(count)]), 1 / count)
        return b.Tanh(self._conv(self._leaky(x, SLOPE), "decoder.conv_post", 1, channels, 7))

    def _residual(self, x: OutPort, number: int, channels: int) -> OutPort:
        c, at = self.config, f"decoder.resblocks.{number}"
        kind = number % len(c.resblock_kernel_sizes)
        kernel = c.resblock_kernel_sizes[kind]
        for n, dilation in enumerate(c.resblock_dilation_sizes[kind]):
            y = self._conv(self._leaky(x, c.leaky_relu_slope), f"{at}.convs1.{n}", channels, channels, kernel, dilation)
            y = self._conv(self._leaky(y, c.leaky_relu_slope), f"{at}.convs2.{n}", channels, channels, kernel)
            x = self.b.Add(x, y)
        return x


def _same(kernel: int, dilation: int) -> dict[str, tuple[int, ...]]:
    """Return attributes of a convolution which keeps the length."""
    whole = dilation * (kernel - 1)
    return {
        "strides": (1,),
        "pads_begin": (whole // 2,),
        "pads_end": (whole - whole // 2,),
        "dilations": (dilation,),
    }
