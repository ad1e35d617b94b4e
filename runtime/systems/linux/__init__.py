"""Linux: `/proc`, `/sys`, control groups, and calls of the kernel that Python has no names for."""
