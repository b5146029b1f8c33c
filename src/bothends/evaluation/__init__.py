"""How good and how fast: metrics, analyses and the benchmark."""
