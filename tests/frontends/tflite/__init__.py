"""Small TensorFlow Lite files and what LiteRT gives for them."""
