"""Layers in bf16 and f16: data and weights of 16 bits, and sums of products of them."""
