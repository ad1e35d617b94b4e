"""Comparison of compiled models with a reference, layer by layer."""
