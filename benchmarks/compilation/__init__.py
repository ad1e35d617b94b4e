"""Measure time and memory of compiling; compare what two compilers, or two routes to a library, make of a model."""
