"""Proposals of region networks: anchors moved by deltas; the best ones are kept."""
