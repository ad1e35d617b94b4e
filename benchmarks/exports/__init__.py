"""Networks exported exactly as the framework's page says, compiled, and compared with the framework: see `__main__`."""
