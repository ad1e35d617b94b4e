"""Helpers for the nodes of ONNX files."""
