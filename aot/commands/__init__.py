"""Commands of the command line that are more than one call; `cli` registers them."""
