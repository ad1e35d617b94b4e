"""Instructions on registers: conversions, scalar primitives, shuffles, look-ups in short tables."""
