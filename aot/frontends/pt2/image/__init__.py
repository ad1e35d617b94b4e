"""Images and boxes in them."""
