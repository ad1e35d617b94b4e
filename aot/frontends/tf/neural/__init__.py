"""Conversions of TensorFlow operations: layers of networks."""
