"""Pages for trying a network in a browser: images, conversations, and search."""
