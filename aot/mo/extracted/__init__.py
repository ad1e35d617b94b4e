"""Attributes and classes of Model Optimizer's extractors."""
