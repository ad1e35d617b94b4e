"""TensorFlow operations that have no meaning in a library: queues, files, training, code of other languages."""
