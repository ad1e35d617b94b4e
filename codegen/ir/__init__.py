"""Computation and schedule as data: expressions, definitions, schedules, loops, programs."""
