"""The mid-level IR: steps over values in memory, symbolic sizes, the verifier and the printer."""
