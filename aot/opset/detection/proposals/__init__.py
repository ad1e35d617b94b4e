"""Proposals of region networks: anchors moved by deltas, the best of which are kept."""
