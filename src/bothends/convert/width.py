"""Another order of the numbers in a vector: the same network, with its width renumbered.

Two layouts of a sinusoid hold the same numbers in another order. A network that was trained with
one becomes a network for the other if every tensor that reads or writes its vectors is renumbered
with them. Nothing is computed, so it can be undone exactly.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bothends.model.spec import LookupTable, Network, Norm, Projection
from bothends.model.weights import Weights
from bothends.order import IntArray


def interleaved_to_halves(width: int) -> IntArray:
    """For each place in `halves`, where its number is in `interleaved`."""
    return np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])


def renumber_width(network: Network, weights: Weights, order: IntArray) -> Weights:
    """The same network with place `i` of its vectors taken from place `order[i]`."""
    renumbered: Weights = dict(weights)

    def visit(part: Any) -> None:
        if isinstance(part, LookupTable):
            renumbered[part.weight.name] = weights[part.weight.name][:, order]
        elif isinstance(part, Norm):
            for tensor in (part.gain, part.shift):
                renumbered[tensor.name] = weights[tensor.name][order]
        elif isinstance(part, Projection):
            if part.parts[0] in ("output", "outer"):  # writes vectors
                for tensor in (part.weight, part.bias):
                    renumbered[tensor.name] = weights[tensor.name][order]
            else:  # reads them
                renumbered[part.weight.name] = weights[part.weight.name][:, order]
        elif isinstance(part, tuple):
            for each in part:
                visit(each)
        elif is_dataclass(part):
            for field in fields(part):
                visit(getattr(part, field.name))

    visit(network)
    if network.output_weight != network.target_embedding.weight:
        name = network.output_weight.name
        renumbered[name] = weights[name][:, order]
    return renumbered
