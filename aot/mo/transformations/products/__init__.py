"""Products: MatMul and convolutions, their weights and the operations before them."""
