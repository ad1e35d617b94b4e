"""Reader of Caffe's files: a network in text, .prototxt, and its weights, .caffemodel."""
