"""A user's operations and passes: folders, their modules, and declarations in files."""
