"""Foreign operations become operations of the opset: what the front ends of all frameworks share."""
