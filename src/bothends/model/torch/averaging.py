"""The average of several models with the same shape: checkpoints of one run, most often.

Tensor by tensor, so that memory holds the result and one tensor of one model, whatever their
number. Sums are in float64, which makes the result independent of the order of the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bothends.errors import BothendsError
from bothends.files import new_directory
from bothends.model.directory import (
    FILES,
    Description,
    read_description,
    record_model,
    write_description,
)
from bothends.model.weights import Weights, open_weights, write_weights
from bothends.text.vocabulary import Vocabularies


def average_models(directories: Sequence[Path], output: Path) -> Description:
    """Write the average of the models in `directories` to `output`; its description.

    All but the weights is the last model's.
    """
    descriptions = [read_description(directory) for directory in directories]
    last = descriptions[-1]
    for directory, description in zip(directories, descriptions, strict=True):
        if (description.model, description.order) != (last.model, last.order):
            raise BothendsError(
                f"{directory}: another shape or order than {directories[-1]}; "
                "only models of one kind have an average"
            )
    weights = _average(directories, descriptions)
    names = [Path(directory).name for directory in directories]
    description = replace(last, provenance={**last.provenance, "average_of": names})
    with new_directory(Path(output)) as partial:
        Vocabularies.load(directories[-1]).save(partial)
        write_weights(partial, weights)
        write_description(partial, description)
        record_model(partial, FILES)
    return description


def _average(directories: Sequence[Path], descriptions: Sequence[Description]) -> Weights:
    files = [open_weights(*each) for each in zip(directories, descriptions, strict=True)]
    averages = {}
    for name in files[-1].names:
        tensors = (file.read(name) for file in files)
        total = np.zeros(files[-1].shape(name))
        for tensor in tensors:
            total += tensor
        averages[name] = (total / len(files)).astype(tensor.dtype)
    return averages
