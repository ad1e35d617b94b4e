"""Arrays in the form that compiled code reads, and their files."""
