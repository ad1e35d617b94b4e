"""Tests of lowering/define."""
