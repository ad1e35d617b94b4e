"""TensorFlow Lite: `.tflite` to a graph of foreign operations, and the pass that turns them into the opset's."""
