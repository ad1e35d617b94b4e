"""Conversions of layers that compute with elements."""
