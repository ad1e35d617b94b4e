"""Control flow, state, strings, constants and random numbers."""
