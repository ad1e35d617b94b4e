"""Model Optimizer's extension API: its graph, operations and transformations, for extension files written for it."""
