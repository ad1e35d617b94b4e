"""Fuzzers: mutants of files, random graphs, pairs of equal graphs, hostile calls; docs/develop/fuzzing.md."""
