"""The module around the kernels: entry points, control flow, shapes, the plan of a call."""
