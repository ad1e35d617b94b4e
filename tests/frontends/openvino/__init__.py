"""Tests of frontends/openvino."""
