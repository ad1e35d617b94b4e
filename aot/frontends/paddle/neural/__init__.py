"""Conversions of layers."""
