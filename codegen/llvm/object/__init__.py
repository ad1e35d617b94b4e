"""Kernels as object code: compiled in parts and in several processes, kept in a store, joined."""
