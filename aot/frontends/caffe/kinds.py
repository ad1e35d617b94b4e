"""Types of layers that the reader knows by their names."""

EACH = ("Convolution", "ConvolutionDepthwise", "Deconvolution", "DepthwiseConvolution")  # a result for each bottom
FROM_FILES = ("AnnotatedData", "Data", "HDF5Data", "ImageData", "WindowData")  # layers that read data sets
INPUTS = ("Input", "MemoryData")
