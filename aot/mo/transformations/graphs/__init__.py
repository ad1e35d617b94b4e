"""Graphs as a whole: names, element types, constants, cycles."""
