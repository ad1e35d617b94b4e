"""The network VITS, which reads a text and speaks it."""
