"""Slices: StridedSlice in normal form, what becomes StridedSlice, and what StridedSlice becomes."""
