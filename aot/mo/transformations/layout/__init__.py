"""Layouts: Transposes and what moves channels."""
