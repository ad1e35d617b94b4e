"""Model Optimizer's operations: nodes of its graph are made by their classes."""
