"""The network. `config` and `directory` need no PyTorch; the other modules do."""
