"""Functions that extractors of Caffe's layers call."""
