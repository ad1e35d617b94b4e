"""Reads programs that PyTorch exported (torch.export.save), without PyTorch."""
