"""Conversion of foreign operations to the opset, shared by the front ends of all frameworks."""
