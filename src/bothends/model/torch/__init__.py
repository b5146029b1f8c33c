"""The network in PyTorch: layers, checkpoints, averaging."""
