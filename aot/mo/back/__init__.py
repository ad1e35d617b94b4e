"""Transformations of the graph that is to be written or compiled."""
