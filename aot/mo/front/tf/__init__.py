"""Transformations with a configuration file, and helpers for TensorFlow."""
