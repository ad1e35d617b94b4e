"""A page on which somebody tries a classifier of pictures, for any static server."""
