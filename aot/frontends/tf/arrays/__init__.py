"""Conversions of TensorFlow operations: shapes, places and made-up data."""
