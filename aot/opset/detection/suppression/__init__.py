"""Suppression of boxes that overlap better ones."""
