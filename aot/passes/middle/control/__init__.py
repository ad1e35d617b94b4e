"""Bodies, loops and variables: simplified for the passes after."""
