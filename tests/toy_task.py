"""A toy task and the smallest training loop: reverse a sequence, with a tiny model of any order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from bothends.engines.protocol import pad_sources
from bothends.engines.torch import TorchEngine
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import IntArray
from bothends.search.beam import Hypothesis, beam_search
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import SpecialTokens

# Last, so that no module of the experiments hides another.
sys.path.append(str(Path(__file__).parents[1] / "experiments"))

from toy_training import toy_config, train_toy

#: Four special tokens and twelve symbols.
TOY_CONFIG = toy_config(16)
SPECIAL = TOY_CONFIG.special
#: Sequences have from one symbol, which is less than a block of most orders, up to this many.
LONGEST = 8


class Pair(NamedTuple):
    source: list[int]
    target: list[int]


def random_sequence(random: np.random.Generator) -> list[int]:
    length = random.integers(1, LONGEST + 1)
    symbols: list[int] = random.integers(4, TOY_CONFIG.vocabulary_size, length).tolist()
    return symbols


def is_held_out(sequence: Sequence[int]) -> bool:
    """A fifth of all sequences, of each length, is kept for testing."""
    return sum(sequence) % 5 == 0


def reversals(random: np.random.Generator, count: int, *, held_out: bool) -> list[Pair]:
    """Random sequences and their reversals, all held out of training or none."""
    pairs: list[Pair] = []
    while len(pairs) < count:
        sequence = random_sequence(random)
        if is_held_out(sequence) == held_out:
            pairs.append(Pair(sequence, sequence[::-1]))
    return pairs


def loss_of(model: Transformer, pairs: Sequence[Pair]) -> Tensor:
    """Mean cross-entropy over all real target slots."""
    order, special = model.order, model.config.special
    slots = order.target_slots([pair.target for pair in pairs], special.end, special.pad)
    inputs = (source_batch(pairs, special), order.shift(slots, special.start))
    block = BlockTensors.of(order.whole(slots.shape[1]))
    logits = model(*(torch.from_numpy(array) for array in inputs), block)  # (S, T, V)
    return F.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(slots).flatten(), ignore_index=special.pad
    )


def train(model: Transformer, batch: Callable[[], Sequence[Pair]], updates: int) -> None:
    """So many updates, each on the next batch."""
    train_toy(model, lambda: loss_of(model, batch()), updates)


def generate(model: Transformer, pairs: Sequence[Pair]) -> list[Hypothesis]:
    """What the model makes of the sources, by greedy search."""
    options = SearchOptions(beam=1, max_length=2 * LONGEST)
    found = beam_search(TorchEngine(model), model.order, SPECIAL, source_batch(pairs), options)
    return [best for (best,) in found]


def source_batch(pairs: Sequence[Pair], special: SpecialTokens = SPECIAL) -> IntArray:
    return pad_sources([[*pair.source, special.end] for pair in pairs], special.pad)
