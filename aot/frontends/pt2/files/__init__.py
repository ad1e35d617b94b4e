"""The archive: entries of the zip, its JSON, its weights."""
