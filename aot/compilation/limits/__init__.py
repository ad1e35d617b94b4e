"""Limits of memory and time for a compilation, and fewer runs of the garbage collector in it."""
