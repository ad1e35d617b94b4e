"""Pages on which somebody tries a network in a browser: images, conversations, and search."""
