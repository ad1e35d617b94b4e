"""Times of a model's kernels against the limits of the machine."""
