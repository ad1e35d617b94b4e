"""Conversions of layers of networks."""
