"""Conversions of ONNX operations: pictures."""
