"""Tests of lowering/storage."""
