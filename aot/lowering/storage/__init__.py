"""Types in which values lie in memory: bytes, small integers, f16 where nothing is lost."""
