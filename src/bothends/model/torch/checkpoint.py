"""Weights in a model directory: saved whole, loaded strictly, and carried over to another shape.

The format is safetensors, so that loading a model never runs code. Nothing is guessed on loading:
the tensors in the file are those that `config.json` asks for, by name, shape and one precision, or
there is a one-line error that names the first one that is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.config import ModelConfig
from bothends.model.directory import (
    CONFIG,
    WEIGHTS,
    Description,
    read_description,
    write_description,
)
from bothends.model.torch.transformer import Transformer


def save_model(directory: Path, model: Transformer, description: Description) -> None:
    """Write weights and description; each file is replaced whole or not at all."""
    directory = Path(directory)
    _make_directory(directory)
    weights = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    # The description comes last: a new directory is not a model before it is complete.
    write_atomically(directory / WEIGHTS, save(weights, metadata={"format": "pt"}))
    write_description(directory, description)


def load_model(directory: Path) -> tuple[Transformer, Description]:
    """The model in `directory` on the CPU, in the precision in which it was saved."""
    description = read_description(directory)
    with torch.device("meta"):  # no memory, no initialisation: the file has every weight
        model = Transformer(description.model, description.order)
    model.load_state_dict(read_weights(directory, description), strict=True, assign=True)
    return model, description


def read_weights(directory: Path, description: Description) -> dict[str, Tensor]:
    """The tensors in `directory`, which are exactly those of the model described."""
    path = Path(directory) / WEIGHTS
    if not path.is_file():
        raise BothendsError(f"{directory}: no weights, {WEIGHTS} is missing")
    try:
        found: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise BothendsError(f"{path}: damaged, not a file of weights ({error})") from None
    expected = expected_shapes(description)
    _check_names(path, expected, found)
    for name, tensor in found.items():
        shape = tuple(tensor.shape)
        if shape != expected[name]:
            raise BothendsError(
                f"{path}: tensor {name} has shape {shape}, but {CONFIG} asks for {expected[name]}"
            )
    precisions = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in found.values()})
    if len(precisions) > 1 or not all(tensor.is_floating_point() for tensor in found.values()):
        raise BothendsError(
            f"{path}: expected tensors of one floating-point type, found {', '.join(precisions)}"
        )
    return found


def expected_shapes(description: Description) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight of the model described."""
    with torch.device("meta"):
        model = Transformer(description.model, description.order)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _check_names(path: Path, expected: Mapping[str, object], found: Mapping[str, object]) -> None:
    for problem, names in (
        ("is missing", [name for name in expected if name not in found]),
        (f"is not one that {CONFIG} asks for", sorted(found.keys() - expected.keys())),
    ):
        if names:
            more = f" ({len(names)} such tensors)" if len(names) > 1 else ""
            raise BothendsError(f"{path}: tensor {names[0]} {problem}{more}")


@dataclass(frozen=True)
class Transfer:
    """What `transfer_weights` did, by the names of tensors."""

    #: tensors of the model that were taken over
    taken: tuple[str, ...]
    #: tensors of the model that stay at their initialisation
    initialised: tuple[str, ...]
    #: tensors of the source that the model has no place for
    left: tuple[str, ...]


def transfer_weights(source: Path | Transformer, model: Transformer) -> Transfer:
    """Start `model` from the weights of another one: what fits by name and shape is taken over.

    The order may differ. Where `model` has fewer layers, it takes evenly spaced ones, the first and
    the last among them (only the first, if it has one): the ends of a stack do what no other layer
    does. Layers that the source lacks, and a direction embedding that it lacks or has for another
    number of directions, stay at their initialisation. Width, heads and place of the norms must be
    the same: without them, weights that fit would mean something else.
    """
    if isinstance(source, Transformer):
        config, weights = source.config, source.state_dict()
    else:
        description = read_description(source)
        config, weights = description.model, read_weights(source, description)
    where = "the given model" if isinstance(source, Transformer) else source
    for setting in ("width", "heads", "norm"):
        theirs, ours = getattr(config, setting), getattr(model.config, setting)
        if theirs != ours:
            raise BothendsError(
                f"{where}: has {setting} {theirs}, and the model that is to begin with it {ours}; "
                f"set model.{setting}={theirs}"
            )
    origin = _origins(model.config, config)
    taken, initialised, used = [], [], set()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            original = re.sub(r"^(?:en|de)coder\.layers\.\d+", lambda m: origin[m[0]], name)
            if original in weights and weights[original].shape == tensor.shape:
                tensor.copy_(weights[original])
                taken.append(name)
                used.add(original)
            else:
                initialised.append(name)
    return Transfer(
        tuple(taken), tuple(initialised), tuple(name for name in weights if name not in used)
    )


def evenly_spaced(wanted: int, available: int) -> list[int]:
    """`wanted` of the layers `0 ... available - 1`, first and last included; all, if too few."""
    if wanted >= available:
        return list(range(available))
    return [int(layer) for layer in np.linspace(0, available - 1, wanted).round()]


def _origins(wanted: ModelConfig, available: ModelConfig) -> dict[str, str]:
    """Which layer of the source becomes which of the model: `{"decoder.layers.1": ...}`."""
    origins = {}
    for stack, ours, theirs in (
        ("encoder", wanted.encoder_layers, available.encoder_layers),
        ("decoder", wanted.decoder_layers, available.decoder_layers),
    ):
        layers = evenly_spaced(ours, theirs)
        # A layer beyond those has no origin: a name that no source has.
        layers += range(len(layers), ours)
        for i, layer in enumerate(layers):
            origins[f"{stack}.layers.{i}"] = f"{stack}.layers.{layer}"
    return origins


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BothendsError(f"{directory}: cannot make this directory ({error.strerror})") from None
