"""Types of values in memory: bytes, small integers, f16 if nothing is lost."""
