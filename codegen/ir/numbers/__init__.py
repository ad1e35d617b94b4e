"""Numbers in kernels: dot products of short ones, clamps, denormals, and what must not be contracted."""
