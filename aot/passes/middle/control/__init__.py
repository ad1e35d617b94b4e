"""Bodies, loops and variables: made plain for the passes behind."""
