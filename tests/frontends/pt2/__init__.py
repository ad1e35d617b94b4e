"""Tests of programs that PyTorch exported."""
