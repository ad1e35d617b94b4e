"""The mid-level IR: steps over values in memory, symbolic sizes, and what both are checked and printed by."""
