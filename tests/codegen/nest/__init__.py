"""Tests of codegen/nest."""
