"""The average of several models with the same shape: checkpoints of one run, most often.

Tensor by tensor, so that memory holds the result and one tensor of one model, whatever their
number. Sums are in float64, which makes the result independent of the order of the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.directory import WEIGHTS, Description, read_description, write_description
from bothends.model.torch.checkpoint import expected_shapes
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
    weights = _average(directories, expected_shapes(last))
    names = [Path(directory).name for directory in directories]
    description = last.model_copy(update={"provenance": {**last.provenance, "average_of": names}})
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BothendsError(f"{output}: cannot make this directory ({error.strerror})") from None
    Vocabularies.load(directories[-1]).save(output)
    write_atomically(Path(output) / WEIGHTS, save(weights, metadata={"format": "pt"}))
    # The description comes last: the directory is not a model before it is complete.
    write_description(output, description)
    return description


def _average(directories: Sequence[Path], shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    paths = [Path(directory) / WEIGHTS for directory in directories]
    with ExitStack() as stack:
        files = [stack.enter_context(_open(path)) for path in paths]
        averages = {}
        for name, shape in shapes.items():
            total = torch.zeros(shape, dtype=torch.float64)
            for path, file in zip(paths, files, strict=True):
                tensor = _read(path, file, name)
                if tuple(tensor.shape) != shape:
                    raise BothendsError(
                        f"{path}: tensor {name} has shape {tuple(tensor.shape)}, expected {shape}"
                    )
                total += tensor
            averages[name] = (total / len(paths)).to(tensor.dtype)
    return averages


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise BothendsError(f"{path.parent}: no weights, {WEIGHTS} is missing") from None
    except (SafetensorError, OSError) as error:
        raise BothendsError(f"{path}: damaged, not a file of weights ({error})") from None


def _read(path: Path, file: Any, name: str) -> Tensor:
    try:
        tensor: Tensor = file.get_tensor(name)
    except SafetensorError:
        raise BothendsError(f"{path}: tensor {name} is missing") from None
    return tensor
