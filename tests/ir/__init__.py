"""Graphs: text, rules, interpretation."""
