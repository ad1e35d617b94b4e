"""Code generation: from loop nests to machine code."""
