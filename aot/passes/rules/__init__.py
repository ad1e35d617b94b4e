"""Rules anchored on one operation each, one theme per file."""
