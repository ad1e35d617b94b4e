"""The text form of graphs: written, scanned, read back."""
