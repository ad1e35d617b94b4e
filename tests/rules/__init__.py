"""Proofs and tests of the rewrite rules."""
