"""Libraries that run the ONNX graphs of a bundle, behind one interface."""
