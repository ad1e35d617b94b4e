"""Tests of lowering/ir."""
