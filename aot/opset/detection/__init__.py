"""Boxes: suppression, proposals, regions of interest."""
