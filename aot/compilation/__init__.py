"""From a model to a library: the driver, and what it keeps, measures and bounds."""
