"""Transformations of the front phase, before shapes are known."""
