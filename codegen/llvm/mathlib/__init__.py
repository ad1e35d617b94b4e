"""Transcendental functions as expressions over additions, products and bits."""
