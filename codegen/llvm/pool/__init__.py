"""Templates of LLVM IR written by hand: the thread pool, the entry points, what waits and cancels."""
