"""Conversions of operations of the domain ai.onnx.ml: features, linear models, trees."""
