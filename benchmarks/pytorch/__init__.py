"""Networks of PyTorch, exported where PyTorch is, compiled and compared where it is not; times against PyTorch."""
