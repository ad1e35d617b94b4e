"""Conversions of TensorFlow operations: arithmetic, products, reductions, transforms."""
