"""Rewrites of graphs: passes, rules, and the order they run in."""
