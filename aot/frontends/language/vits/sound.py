"""Sound of VITS: a flow, backwards, and HiFi-GAN, from normal numbers to samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.language.vits.layers import VitsLayers
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

SLOPE = 0.01  # negative slope of HiFi-GAN's last LeakyRelu


class Sound(VitsLayers):
    """Makes samples of columns [1, channels, frames]."""

    def waveform(self, x: OutPort) -> OutPort:
        """Return samples [1, samples] of normal numbers around the means of a text."""
        return self.b.Squeeze(self._audio(self._flow(x)), self._integers(1))

    def _flow(self, x: OutPort) -> OutPort:
        """Return the result of the inverse flow for normal numbers, [1, channels, frames]."""
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
        layers, ports = c.prior_encoder_num_wavenet_layers, list[OutPort]()
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
            ports.append(y if last else self._slice(y, width, 2 * width, axis=1))
            x = x if last else b.Add(x, self._slice(y, 0, width, axis=1))
        return self._sum(ports)

    def _sum(self, values: Sequence[OutPort]) -> OutPort:
        port = values[0]
        for value in values[1:]:
            port = self.b.Add(port, value)
        return port

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
