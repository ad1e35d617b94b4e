"""Sums of products and windows: matrices, convolutions, attention, pooling."""
