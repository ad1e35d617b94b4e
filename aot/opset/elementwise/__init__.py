"""One element of each input makes one element of the output."""
