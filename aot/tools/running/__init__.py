"""One inference on files: pictures as inputs, names of classes, a sandbox for libraries of others."""
