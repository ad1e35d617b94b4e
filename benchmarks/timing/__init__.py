"""One interleaved run: the runtimes, their processes, rounds and results."""
