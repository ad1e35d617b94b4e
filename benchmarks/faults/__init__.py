"""Faults put into the project by a program: how many of them the tests find."""
