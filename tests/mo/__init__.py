"""Model Optimizer's extension API."""
