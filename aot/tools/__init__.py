"""Tools for one network or library: check, convert, compare, quantise, report, run, sign."""
