"""Conversions of layers of detectors."""
