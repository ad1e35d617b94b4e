"""Tests of what needs PyTorch beside the compiler."""
