"""The runtime's engine: ONNX graphs, and what runs them."""
