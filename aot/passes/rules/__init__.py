"""Rules anchored on one operation, one theme a file."""
