"""Shapes, indices, and movement of elements."""
