"""Quantisation after training: networks to 8 bits by sample data, weights of language models to 8 or 4 bits."""
