"""Judges of random graphs: references, peers, and how far right programs may be apart."""
