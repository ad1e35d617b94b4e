"""Sizes and tensors of VITS, and layers of values [1, channels, length] that all of its parts have."""

from __future__ import annotations

from math import pi
from typing import Protocol

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.language.layers import Parts
from aot.ir.graph import Graph, OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType

SEEDS = {"durations": 1, "sound": 2}  # seeds of the noise by its use


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
        """Return a tensor; weight-normalised weights include their norm."""
        ...

    def has(self, name: str) -> bool:
        """True if there is a tensor with the name."""
        ...


class VitsLayers(Parts):
    """Builds layers of a network in `graph`; `speaker`: what it knows of the speaker, [1, elements, 1], None of one."""

    def __init__(self, graph: Graph, config: VitsConfig, weights: VitsWeights, speaker: OutPort | None = None) -> None:
        super().__init__(graph)
        self.config, self.weights, self.speaker = config, weights, speaker

    def _conditioned(self, x: OutPort, name: str, channels: int) -> OutPort:
        """Add what a layer makes of the speaker."""
        if self.speaker is None:
            return x
        return self.b.Add(x, self._conv(self.speaker, name, channels, self.config.speaker_embedding_size))

    def _conv(self, x: OutPort, name: str, rows: int, columns: int, kernel: int = 1, dilation: int = 1) -> OutPort:
        """Convolve [1, channels, length]; the length stays."""
        weights = self.b.const(self.weights.floats(f"{name}.weight", rows, columns, kernel), DType.F32)
        return self._biased(self.b.Convolution(x, weights, **same_length(kernel, dilation)), name, rows)

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


def same_length(kernel: int, dilation: int) -> dict[str, tuple[int, ...]]:
    """Return attributes of a convolution which keeps the length."""
    padding = dilation * (kernel - 1)
    return {
        "strides": (1,),
        "pads_begin": (padding // 2,),
        "pads_end": (padding - padding // 2,),
        "dilations": (dilation,),
    }
