"""From a model to a library: the driver, the cache, searches, and limits of memory and time."""
