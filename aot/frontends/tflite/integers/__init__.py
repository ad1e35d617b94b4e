"""Operations on quantised tensors as LiteRT's integer kernels compute them."""
