"""What Model Optimizer's unit tests import of its test utilities."""
