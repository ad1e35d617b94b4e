"""What extractors of Caffe's layers call."""
