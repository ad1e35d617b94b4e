"""Tests of lowering/numbers."""
