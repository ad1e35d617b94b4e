"""Tests of codegen/llvm."""
