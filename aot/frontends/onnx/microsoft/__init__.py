"""Conversions of operations of the domain com.microsoft."""
