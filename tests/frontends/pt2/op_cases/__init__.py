"""Tables of cases of operations, and what PyTorch gives for them."""
