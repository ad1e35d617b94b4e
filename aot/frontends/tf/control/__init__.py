"""If, While and lists of tensors."""
