"""Steps to a program: places in memory, schedules, kernels, control flow between calls."""
