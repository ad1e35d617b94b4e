"""Tests of lowering/algorithms."""
