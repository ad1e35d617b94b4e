"""Recurrent cells and sequences, and what decodes them."""
