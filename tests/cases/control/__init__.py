"""Cases of the operations of aot/opset/control."""
