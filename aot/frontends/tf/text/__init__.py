"""Conversions of TensorFlow operations: strings, where they are constants."""
