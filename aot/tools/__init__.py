"""What looks at a network or a library: check, convert, compare, quantise, report, run, sign."""
