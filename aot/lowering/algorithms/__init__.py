"""Passes that compute the same by other sums: Winograd, Strassen, separable pooling, recurrences."""
