"""Tests of lowering/fusion."""
