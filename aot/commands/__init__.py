"""Commands of the command line; `cli` has the module of each."""
