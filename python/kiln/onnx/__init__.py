"""Models of ONNX as files, for Kiln to read."""
