"""A definition and a schedule to a loop nest."""
