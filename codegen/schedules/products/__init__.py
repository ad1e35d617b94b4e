"""Schedules of products: matrices, convolutions, windows over channels, products with quantised weights."""
