"""Order of dimensions and channels: of the interface, of inner values, of pre-processing."""
