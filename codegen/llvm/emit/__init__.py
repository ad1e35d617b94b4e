"""Kernels to LLVM IR."""
