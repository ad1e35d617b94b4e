"""Inference of shapes and values over Model Optimizer's graph."""
