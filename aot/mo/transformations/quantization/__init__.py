"""Quantization: QuantizeLinear and DequantizeLinear, FakeQuantize, and weights in integers."""
