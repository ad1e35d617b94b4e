"""Tests of comparing."""
