"""A user's operations and passes: folders, their modules, what the files declare."""
