"""Readers of libraries of other systems, to describe and check them; the wheel of the compiler has them."""
