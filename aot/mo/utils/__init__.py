"""Functions that extensions for Model Optimizer import."""
