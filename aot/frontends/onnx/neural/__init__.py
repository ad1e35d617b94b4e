"""Conversions of ONNX operations: layers of networks."""
