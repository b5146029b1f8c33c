"""A converted model: what a converter hands over, and how it becomes a directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bothends.files import new_directory
from bothends.model.directory import FILES, Description, record_model, write_description
from bothends.model.weights import weight_shapes, write_weights
from bothends.text.vocabulary import Vocabularies

#: What a token that is never generated has for a bias on its logit.
FORBIDDEN = np.float32(-1e4)


@dataclass(frozen=True)
class ConvertedModel:
    """Everything that a model directory has."""

    description: Description
    weights: Mapping[str, NDArray[np.float32]]
    vocabularies: Vocabularies

    def __post_init__(self) -> None:
        """A ValueError if the tensors are not those of the description."""
        expected = weight_shapes(self.description.model, self.description.order)
        found = {name: array.shape for name, array in self.weights.items()}
        for name in sorted(expected.keys() | found.keys()):
            if found.get(name) != expected.get(name):
                raise ValueError(
                    f"tensor {name} has shape {found.get(name)}, expected {expected.get(name)}"
                )

    def write(self, output: Path) -> None:
        """Write a model directory, whole or not at all."""
        with new_directory(output) as directory:
            self.vocabularies.save(directory)
            write_weights(directory, self.weights)
            write_description(directory, self.description)
            record_model(directory, FILES)
