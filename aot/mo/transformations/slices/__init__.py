"""Slices: StridedSlice in normal form, operations that become it, and operations that replace it."""
