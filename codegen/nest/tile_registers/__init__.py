"""Loops of products in tile registers."""
