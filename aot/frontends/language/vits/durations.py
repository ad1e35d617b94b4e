"""Durations of VITS: how many frames each token takes, by flows along splines or by convolutions."""

from __future__ import annotations

from math import log

import numpy as np

from aot.frontends.language.vits.layers import VitsLayers, same_length
from aot.ir.graph import OutPort
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType

LEAST_BIN, LEAST_SLOPE = 1e-3, 1e-3  # of splines


class Durations(VitsLayers):
    """Predicts the frames of each token from the states of a text."""

    def log_frames(self, x: OutPort, noise: OutPort) -> OutPort:
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
        # backwards, each flow after an exchange of the pair; training has one more, which the durations do not need
        for n in range(c.duration_predictor_num_flows, 1, -1):
            first, second = second, first
            second = self._spline_flow(first, second, x, f"{at}.flows.{n}")
        shifts, logs = (self.weights.floats(f"{at}.flows.0.{part}", 2, 1) for part in ("translate", "log_scale"))
        return b.Multiply(b.Subtract(second, shifts[:1]), np.exp(-logs[:1]))

    def _separable(self, x: OutPort, at: str, condition: OutPort | None = None) -> OutPort:
        """Add the output of depthwise convolutions, each followed by a product."""
        b, c = self.b, self.config
        width, kernel = c.hidden_size, c.duration_predictor_kernel_size
        x = x if condition is None else b.Add(x, condition)
        for n in range(c.depth_separable_num_layers):
            name = f"{at}.convs_dilated.{n}"
            weights = self.weights.floats(f"{name}.weight", width, 1, kernel)[:, None]
            y = b.GroupConvolution(x, b.const(weights, DType.F32), **same_length(kernel, kernel**n))
            y = b.Gelu(self._norm(self._biased(y, name, width), f"{at}.norms_1.{n}", width))
            y = self._norm(self._conv(y, f"{at}.convs_pointwise.{n}", width, width), f"{at}.norms_2.{n}", width)
            x = b.Add(x, b.Gelu(y))
        return x

    def _spline_flow(self, first: OutPort, second: OutPort, condition: OutPort, at: str) -> OutPort:
        """Return `second` moved back along a spline; `first` and the text give the spline's places."""
        b, c, width = self.b, self.config, self.config.hidden_size
        bins = c.duration_predictor_flow_bins
        x = self._separable(self._conv(first, f"{at}.conv_pre", width, 1), f"{at}.conv_dds", condition)
        x = b.Transpose(self._conv(x, f"{at}.conv_proj", 3 * bins - 1, width), self._integers(0, 2, 1))
        parts = [self._slice(x, n * bins, min((n + 1) * bins, 3 * bins - 1), axis=2) for n in range(3)]
        scale = width**-0.5
        y = b.Transpose(second, self._integers(0, 2, 1))
        port = self._spline(y, b.Multiply(parts[0], scale), b.Multiply(parts[1], scale), parts[2])
        return b.Transpose(port, self._integers(0, 2, 1))

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
        position = b.Subtract(b.ReduceSum(begun, self._integers(2), keep_dims=True), self._integer(1))
        position = b.Maximum(b.Minimum(position, self._integer(bins - 1)), self._integer(0))

        def at(x: OutPort, further: int = 0) -> OutPort:
            return b.GatherElements(x, b.Add(position, self._integer(further)) if further else position, axis=2)

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

    def token_of_frames(self, durations: OutPort) -> OutPort:
        """Return the token of each frame, for the frames of each token; one frame for a text without any."""
        b = self.b
        ends = b.CumSum(b.Convert(durations, destination_type=DType.I64), self._integer(0))
        count = b.Maximum(b.ReduceMax(ends, self._integers(0), keep_dims=True), self._integer(1))
        frames = b.Unsqueeze(self._range(count), self._integers(1))
        passed = b.LessEqual(b.Unsqueeze(ends, self._integers(0)), frames)
        tokens = b.ReduceSum(b.Convert(passed, destination_type=DType.I64), self._integers(1))
        last = b.Subtract(b.ShapeOf(durations, output_type=DType.I64), self._integer(1))
        return b.Minimum(tokens, last)
