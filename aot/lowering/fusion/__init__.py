"""Passes that join, split and group definitions, before memory has an order."""
