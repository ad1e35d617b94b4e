"""Conversions of TensorFlow operations on images and boxes."""
