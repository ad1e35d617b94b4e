"""The version of the project, defined once."""

VERSION = "0.1.0"
