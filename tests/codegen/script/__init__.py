"""Tests of codegen/script."""
