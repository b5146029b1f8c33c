"""A model with one more decoder layer on top, which at first hardly changes what it writes.

    python deepen.py MODEL --source TEXT --target TEXT --output DEEPER

The slots of a block do not see what the others are about to write: each decides alone. In a layer
on top, they see what the layers below would have written, and can agree. The new layer has the
weights of the last one, except that its sublayers add nothing yet (their last product is zero). Its
norms would still change what passes through, so they get the scales and biases that reproduce it
best on the pairs of a text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bothends.convert.result import ConvertedModel
from bothends.model.config import ModelConfig
from bothends.model.directory import read_description
from bothends.model.torch.transformer import Transformer
from bothends.model.weights import in_float32, read_weights
from bothends.text.vocabulary import Vocabularies
from bothends.training.batches import collate
from bothends.training.step import Tensors

Array = NDArray[np.float32]
Pair = tuple[NDArray[np.int64], NDArray[np.int64]]
#: Tokens of the longest source or target that is looked at.
LONGEST = 60
#: Pairs at a time.
BATCH = 20


def passing_norm(states: torch.Tensor, epsilon: float) -> tuple[Array, Array]:
    """Scale and bias of a layer norm that leaves `states` (n, D) as they are, nearly."""
    states = states.double()
    normal = torch.nn.functional.layer_norm(states, states.shape[-1:], eps=epsilon)
    mean, normal_mean = states.mean(0), normal.mean(0)
    spread = (normal - normal_mean).square().mean(0)
    scale = ((normal - normal_mean) * (states - mean)).mean(0) / spread
    bias = mean - scale * normal_mean
    return scale.float().numpy(), bias.float().numpy()


def last_states(model: Transformer, pairs: Sequence[Pair]) -> torch.Tensor:
    """What the decoder hands to the output layer for all slots of the pairs: (n, D)."""
    special = model.config.special
    found = []
    with torch.inference_mode():
        for start in range(0, len(pairs), BATCH):
            arrays = collate(pairs[start : start + BATCH], model.order, special)
            batch = Tensors.of(arrays, special, torch.device("cpu"))
            found.append(model.hidden(batch.source, batch.tokens, batch.block, batch.slots))
    return torch.cat(found)


def deeper_weights(
    weights: dict[str, Array], config: ModelConfig, scale: Array, bias: Array
) -> dict[str, Array]:
    """The weights, and those of the new layer."""
    old, new = (f"decoder.layers.{config.decoder_layers + add}." for add in (-1, 0))
    deeper = dict(weights)
    for name, array in weights.items():
        if not name.startswith(old):
            continue
        sublayer = name.removeprefix(old)
        if sublayer.endswith("norm.weight"):
            array = scale
        elif sublayer.endswith("norm.bias"):
            array = bias
        elif ".output." in sublayer or ".outer." in sublayer:
            array = np.zeros_like(array)
        deeper[new + sublayer] = array
    return deeper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    description = read_description(options.model)
    config = description.model
    if config.norm != "post":
        parser.error("expected a model with layer normalisation after each residual sum")
    weights = in_float32(read_weights(options.model, description))
    vocabularies = Vocabularies.load(options.model, config.special)
    sides = []
    for path, vocabulary in (
        (options.source, vocabularies.source),
        (options.target, vocabularies.target),
    ):
        lines = path.read_text(encoding="utf-8").splitlines()[: options.lines]
        sides.append(vocabulary.encode(lines))
    pairs = [
        (np.array(config.framed(source)), np.array(target))
        for source, target in zip(*sides, strict=True)
        if 0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST
    ]
    model = Transformer(config, description.order).eval()
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    states = last_states(model, pairs)
    deeper = deeper_weights(weights, config, *passing_norm(states, config.norm_epsilon))
    more = replace(config, decoder_layers=config.decoder_layers + 1)
    ConvertedModel(replace(description, model=more), deeper, vocabularies).write(options.output)


if __name__ == "__main__":
    main()
