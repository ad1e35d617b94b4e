"""Conversions of ONNX operations: arithmetic, products, reductions, transforms."""
