"""Tests of supply."""
