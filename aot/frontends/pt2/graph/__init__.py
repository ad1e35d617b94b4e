"""The graph of an archive becomes foreign operations: signature, symbols, mutations, sub-graphs."""
