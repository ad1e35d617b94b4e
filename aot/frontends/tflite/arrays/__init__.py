"""Data that moves."""
