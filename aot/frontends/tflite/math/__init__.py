"""Arithmetic, reductions and products."""
