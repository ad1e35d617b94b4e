"""Numbers of 8 and 16 bits: sums of integers, tables of functions, layers in bf16 and f16."""
