"""Types of layers that the reader knows by their names."""

EACH = ("Convolution", "ConvolutionDepthwise", "Deconvolution", "DepthwiseConvolution")  # a result for each bottom
FROM_FILES = ("AnnotatedData", "Data", "HDF5Data", "ImageData", "WindowData")  # layers that read data sets
INPUTS = ("Input", "MemoryData")


def blob_name(index: int) -> str:
    """Return the name of a layer's blob."""
    return ("weights", "biases")[index] if index < 2 else f"custom_{index}"
