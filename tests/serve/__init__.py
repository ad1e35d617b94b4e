"""Tests of `aot.serve`, against servers that listen."""
