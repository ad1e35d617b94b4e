"""Recurrent cells and sequences, and decoders of CTC."""
