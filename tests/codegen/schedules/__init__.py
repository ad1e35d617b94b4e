"""Tests of codegen/schedules."""
