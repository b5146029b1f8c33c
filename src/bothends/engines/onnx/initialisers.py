"""What the arrays of an exported graph are called, for those who write and who read them.

A tensor keeps the name that the description of the network gives it. A product has a matrix of its
own name and, where it needs them, scales and a bias beside it.
"""

from __future__ import annotations

#: The product that gives the keys and values of all decoder layers.
MEMORY = "memory.key_value"


def scales_of(product: str) -> str:
    """What one step of each output's weights is worth, in int8."""
    return f"{product}.scales"


def bias_of(product: str) -> str:
    return f"{product}.bias"
