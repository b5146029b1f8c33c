"""What runs the network: the protocol, the PyTorch engine, the ONNX Runtime engine."""
