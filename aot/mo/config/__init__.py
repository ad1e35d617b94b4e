"""Configuration files of transformations: `--transformations-config`."""
