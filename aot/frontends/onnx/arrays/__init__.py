"""Conversions of ONNX operations: shapes, places and made-up data."""
