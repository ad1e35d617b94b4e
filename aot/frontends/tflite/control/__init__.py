"""If and While."""
