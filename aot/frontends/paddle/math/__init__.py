"""Conversions of operations that compute with elements."""
