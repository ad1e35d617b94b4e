"""Loops of sums: accumulators in registers, partial sums in lanes, chains, long ones, and steps with factors."""
