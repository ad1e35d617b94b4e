"""Mutants of model files, and what they are judged by."""
