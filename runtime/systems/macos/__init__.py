"""macOS: calls of libSystem; `loading` is that of Linux."""
