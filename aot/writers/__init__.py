"""Writers of model files: one folder for each format."""
