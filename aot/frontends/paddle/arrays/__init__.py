"""Conversions of operations that make and move elements."""
