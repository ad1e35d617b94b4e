"""Reductions, norms, scans, sorting and counting."""
