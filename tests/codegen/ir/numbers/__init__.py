"""Tests of codegen/ir."""
