"""Conversions of layers that move elements."""
