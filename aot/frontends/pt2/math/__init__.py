"""Numbers: elementwise operations, products, reductions."""
