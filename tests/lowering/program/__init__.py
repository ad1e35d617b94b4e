"""Tests of lowering/program."""
