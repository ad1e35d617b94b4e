"""Conversions of ONNX operations: images."""
