"""A model and its directory: saved whole, loaded strictly, and carried over to another shape.

The format is safetensors, so that loading a model never runs code; `model.weights` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.model.directory import (
    CONFIG,
    WEIGHTS,
    Description,
    read_description,
    record_model,
    write_description,
)
from bothends.model.spec import Network, tensors
from bothends.model.torch.transformer import Transformer
from bothends.model.weights import read_weights


def save_model(directory: Path, model: Transformer, description: Description) -> None:
    """Write weights and description; each file is replaced whole or not at all."""
    directory = Path(directory)
    _make_directory(directory)
    weights = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    # The description comes last: a new directory is not a model before it is complete.
    write_atomically(directory / WEIGHTS, save(weights, metadata={"format": "pt"}))
    write_description(directory, description)
    record_model(directory, (WEIGHTS, CONFIG))


def load_model(directory: Path) -> tuple[Transformer, Description]:
    """The model in `directory` on the CPU, in the precision in which it was saved."""
    description = read_description(directory)
    with torch.device("meta"):  # no memory, no initialisation: the file has every weight
        model = Transformer(description.model, description.order)
    model.load_state_dict(read_state(directory, description), strict=True, assign=True)
    return model, description


def read_state(directory: Path, description: Description) -> dict[str, Tensor]:
    """The weights in `directory` as tensors."""
    weights = read_weights(directory, description)
    return {name: torch.from_numpy(array) for name, array in weights.items()}


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
    number of directions, stay at their initialisation. Learned positions of an order that counts
    from both ends start from those of one that does not. Width, heads, place of the norms and
    number of learned positions must be the same: without them, weights that fit would mean
    something else.
    """
    if isinstance(source, Transformer):
        config, network, weights = source.config, source.network, source.state_dict()
    else:
        description = read_description(source)
        config, weights = description.model, read_state(source, description)
        network = Network.of(config, description.order)
    where = "the given model" if isinstance(source, Transformer) else source
    for setting in ("width", "heads", "norm", "learned_positions"):
        theirs, ours = getattr(config, setting), getattr(model.config, setting)
        if theirs != ours:
            raise BothendsError(
                f"{where}: has {setting} {theirs}, but the new model has {ours}; "
                f"set model.{setting}={theirs}"
            )
    origin = _origins(model.network, network)
    signed = _signed_positions(model.network, network)
    taken, initialised, used = [], [], set()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            original = origin.get(name)
            if original in weights and weights[original].shape == tensor.shape:
                tensor.copy_(weights[original])
                taken.append(name)
                used.add(original)
            elif name in signed and original in weights:
                _spread_positions(tensor, weights[original], *signed[name])
                taken.append(name)
                used.add(original)
            else:
                initialised.append(name)
    return Transfer(
        tuple(taken), tuple(initialised), tuple(name for name in weights if name not in used)
    )


def _signed_positions(wanted: Network, available: Network) -> dict[str, tuple[int, int]]:
    """Tables of learned positions that count from another origin: theirs and ours."""
    ours, theirs = wanted.target_positions, available.target_positions
    if ours is None or theirs is None or ours.origin == theirs.origin:
        return {}
    return {ours.weight.name: (theirs.origin, ours.origin)}


def _spread_positions(table: Tensor, given: Tensor, origin: int, new_origin: int) -> None:
    """Fill a table of positions from one that counts from another origin.

    A position that the given table lacks is the vector of the position as far from 0 on the other
    side, moved by one random vector for all of them: the same place, told apart as counted from the
    end. Without it, the first and the last word would start out as the same prediction.
    """
    mark = table[0].clone()  # as it was initialised
    for row in range(len(table)):
        position = row - new_origin
        if 0 <= position + origin < len(given):
            table[row] = given[position + origin]
        elif 0 <= origin - position < len(given):
            table[row] = given[origin - position] + mark


def evenly_spaced(wanted: int, available: int) -> list[int]:
    """`wanted` of the layers `0 ... available - 1`, first and last included; all, if too few."""
    if wanted >= available:
        return list(range(available))
    return [int(layer) for layer in np.linspace(0, available - 1, wanted).round()]


def _origins(wanted: Network, available: Network) -> dict[str, str]:
    """Which tensor of the source becomes which of the model, by name."""
    origins = {tensor.name: tensor.name for tensor in wanted.tensors()}
    for ours, theirs in zip(wanted.stacks, available.stacks, strict=True):
        layers = evenly_spaced(len(ours.layers), len(theirs.layers))
        for number, layer in enumerate(ours.layers):
            if number < len(layers):
                pairs = zip(tensors(layer), tensors(theirs.layers[layers[number]]), strict=True)
                origins.update({mine.name: other.name for mine, other in pairs})
            # A layer beyond those of the source has an origin that no source has: itself.
    return origins


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BothendsError(f"{directory}: cannot make this directory ({error.strerror})") from None
