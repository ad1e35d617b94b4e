"""Proofs about affine expressions over loops and sizes."""
