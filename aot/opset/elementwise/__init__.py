"""Elementwise operations: an output element is computed from one element of each input."""
