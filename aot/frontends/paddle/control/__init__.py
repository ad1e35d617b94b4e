"""Conversions of control flow."""
