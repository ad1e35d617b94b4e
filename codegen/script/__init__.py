"""Irregular algorithms written as Python functions."""
