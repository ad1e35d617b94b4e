"""Layouts: Transposes, and operations that move channels."""
