"""Tests of lowering/layout."""
