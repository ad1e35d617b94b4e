"""Conversions of operations of detectors."""
