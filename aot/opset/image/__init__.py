"""Pictures: resizing, sampling, colours."""
