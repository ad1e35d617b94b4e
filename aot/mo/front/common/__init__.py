"""Base classes of transformations that every framework shares."""
