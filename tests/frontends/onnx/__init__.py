"""Tests of frontends/onnx."""
