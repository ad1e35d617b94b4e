"""Conversions of ONNX operations: shapes, indexing, data movement and generated data."""
