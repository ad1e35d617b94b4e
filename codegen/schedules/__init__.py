"""Schedules, chosen by the form of a definition and the target."""
