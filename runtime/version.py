"""The version of the project, said once."""

VERSION = "0.1.0"
