"""Pages on which somebody tries a network in a browser: pictures, conversations, and search."""
