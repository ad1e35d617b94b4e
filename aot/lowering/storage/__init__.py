"""Constants in memory: bytes with scales, small integers, f16 if nothing is lost."""
