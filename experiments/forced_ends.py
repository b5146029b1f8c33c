"""Does it help filling to train with given ends? A toy of some seconds per model.

    python experiments/forced_ends.py [--updates 600] [--seeds 1 2 3]

For a target of given length, known tokens change nothing about what a slot sees: the tokens of all
earlier slots, which in training are those of the reference anyway. So a model that was trained as
usual has the conditional that filling needs, and training with given ends is the same loss, taken
over the free slots alone. That shifts its weight to inner words and away from outer ones.

In the toy every word has two translations, and a sentence uses one style throughout: given ends
tell which. A share of the training targets has a free span, and only its slots are learned from.
Reported: spans of one to four words that are filled exactly as the given ends demand, greedily, and
whole sentences that are translated right in either style.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)

from bothends.engines.protocol import pad_sources
from bothends.engines.torch import TorchEngine
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import GenerationOrder
from bothends.search.beam import beam_search
from bothends.search.fill import FREE, Frame, fill_frames
from bothends.search.options import SearchOptions
from toy_training import toy_config, train_toy

WORDS, SHORTEST, LONGEST, BATCH, TESTED = 40, 4, 12, 64, 600
CONFIG = toy_config(4 + 3 * WORDS)
SPECIAL = CONFIG.special
Pair = tuple[list[int], list[int]]


def draw(random: np.random.Generator, count: int) -> list[Pair]:
    """Sentences and their translations, each in one of two styles."""
    pairs = []
    for _ in range(count):
        words = random.integers(WORDS, size=random.integers(SHORTEST, LONGEST + 1))
        style = int(random.integers(1, 3))
        pairs.append(((4 + words).tolist(), (4 + style * WORDS + words).tolist()))
    return pairs


def draw_span(random: np.random.Generator, length: int, longest: int) -> range:
    """A span inside a sentence, at least a word from either end."""
    size = int(random.integers(1, min(longest, length - 2) + 1))
    first = int(random.integers(1, length - size))
    return range(first, first + size)


def loss_of(
    model: Transformer, pairs: Sequence[Pair], random: np.random.Generator, share: float
) -> torch.Tensor:
    """The mean over all slots, but of a share of the targets only over those of a free span."""
    order = model.order
    slots = order.target_slots([target for _, target in pairs], SPECIAL.end, SPECIAL.pad)
    wanted = slots.copy()
    for row, (_, target) in zip(wanted, pairs, strict=True):
        if random.random() < share:
            span = draw_span(random, len(target), len(target))
            places = order.permutation(len(target))
            row[: len(target)][~np.isin(places, span)] = SPECIAL.pad
            row[len(target) :] = SPECIAL.pad
    source = pad_sources([[*source, SPECIAL.end] for source, _ in pairs], SPECIAL.pad)
    inputs = (source, order.shift(slots, SPECIAL.start))
    block = BlockTensors.of(order.whole(slots.shape[1]))
    logits = model(*map(torch.from_numpy, inputs), block)
    return F.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(wanted).flatten(), ignore_index=SPECIAL.pad
    )


def train(order: GenerationOrder, updates: int, seed: int, share: float) -> Transformer:
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    model = Transformer(CONFIG, order)
    train_toy(model, lambda: loss_of(model, draw(random, BATCH), random, share), updates)
    return model.eval()


def measure(model: Transformer, random: np.random.Generator) -> tuple[float, float]:
    """Shares of spans filled exactly, and of sentences translated right."""
    pairs, engine = draw(random, TESTED), TorchEngine(model)
    sources = pad_sources([[*source, SPECIAL.end] for source, _ in pairs], SPECIAL.pad)
    options = SearchOptions(beam=1)
    frames = []
    for number, (_, target) in enumerate(pairs):
        span = draw_span(random, len(target), 4)
        known = [FREE if place in span else token for place, token in enumerate(target)]
        frames.append(Frame(tuple(known), number))
    filled = fill_frames(engine, model.order, SPECIAL, sources, frames, options)
    exact = [one[0].tokens == target for one, (_, target) in zip(filled, pairs, strict=True)]
    found = beam_search(engine, model.order, SPECIAL, sources, options)
    right = [
        best.tokens in ([word + WORDS for word in source], [word + 2 * WORDS for word in source])
        for (best,), (source, _) in zip(found, pairs, strict=True)
    ]
    return float(np.mean(exact)), float(np.mean(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.5])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("order\tshare\tseed\tfilled exactly\ttranslated right")
    for order in map(GenerationOrder.parse, ("2x1", "1x1")):
        for share in arguments.shares:
            for seed in arguments.seeds:
                model = train(order, arguments.updates, seed, share)
                exact, right = measure(model, np.random.default_rng(1000))
                print(f"{order}\t{share}\t{seed}\t{exact:.3f}\t{right:.3f}", flush=True)


if __name__ == "__main__":
    main()
