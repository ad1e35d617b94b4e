"""One inference on files: images as inputs, names of classes, a sandbox for libraries of others."""
