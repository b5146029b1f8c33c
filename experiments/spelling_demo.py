"""The idea at work in about a minute, from scratch: tiny models that spell numbers.

Draws the orders, trains a tiny model of each on the spot, and lets all three write the same text in
fewer and fewer steps. The task is to spell numbers: 60812 becomes "sixty thousand eight hundred
twelve". A tenth of all numbers is kept out of training.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bothends.drawing import draw_steps
from bothends.engines.protocol import pad_sources
from bothends.engines.torch import TorchEngine
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.search.beam import Hypothesis, beam_search
from bothends.search.options import SearchOptions
from bothends.training.batches import collate
from bothends.training.step import Tensors, summed_loss
from toy_training import toy_config, train_toy

ORDERS = [GenerationOrder.parse(name) for name in ("1x1", "2x1", "2x2")]
SENTENCE = ["We", "write", "this", "sentence", "from", "both", "ends"]

NAMES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
ONES, TENS = NAMES.split()[:19], NAMES.split()[19:]
SCALES = {"thousand": 1000, "hundred": 100}
SYMBOLS = ["<pad>", "<unk>", "<start>", "<end>", *"0123456789", *ONES, *TENS, *SCALES]
IDS = {symbol: index for index, symbol in enumerate(SYMBOLS)}

CONFIG = toy_config(len(SYMBOLS))
SPECIAL = CONFIG.special
GREEDY = SearchOptions(beam=1, max_length=20)


def spell(number: int) -> list[str]:
    """The words of a number from 1 to 999,999."""
    for name, size in SCALES.items():
        if number >= size:
            count, rest = divmod(number, size)
            return [*spell(count), name, *spell(rest)]
    if number >= 20:
        return [TENS[number // 10 - 2], *spell(number % 10)]
    return [ONES[number - 1]] if number else []


def is_held_out(number: int) -> bool:
    """A tenth of all numbers, scattered by a multiplicative hash."""
    return number * 2654435761 % 2**32 < 2**32 // 10


def draw_numbers(random: np.random.Generator, count: int, *, held_out: bool) -> list[int]:
    """Random numbers, short and long ones alike, all held out of training or none."""
    numbers: list[int] = []
    while len(numbers) < count:
        number = int(random.integers(1, 10 ** random.integers(1, 7)))
        if is_held_out(number) == held_out:
            numbers.append(number)
    return numbers


def digits(number: int) -> list[int]:
    return [IDS[digit] for digit in str(number)]


def loss_of(model: Transformer, numbers: Sequence[int]) -> torch.Tensor:
    """The mean over all words."""
    words = ([IDS[word] for word in spell(number)] for number in numbers)
    pairs = [
        (np.array(digits(number)), np.array(target))
        for number, target in zip(numbers, words, strict=True)
    ]
    batch = Tensors.of(collate(pairs, model.order, SPECIAL), SPECIAL, torch.device("cpu"))
    return summed_loss(model, batch, smoothing=0.0) / batch.count


def train(order: GenerationOrder, updates: int, seed: int = 1) -> Transformer:
    """A new model after so many updates."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    model = Transformer(CONFIG, order)
    train_toy(model, lambda: loss_of(model, draw_numbers(random, 64, held_out=False)), updates)
    return model


def generate(model: Transformer, numbers: Sequence[int]) -> list[Hypothesis]:
    sources = pad_sources([[*digits(number), SPECIAL.end] for number in numbers], SPECIAL.pad)
    found = beam_search(TorchEngine(model), model.order, SPECIAL, sources, GREEDY)
    return [best for (best,) in found]


def words_of(hypothesis: Hypothesis) -> list[str]:
    return [SYMBOLS[token] for token in hypothesis.tokens]


@dataclass(frozen=True)
class SpellingSpeed:
    """What it takes to write one number."""

    steps: float  # on average
    milliseconds: float  # the median


def measure(
    models: Sequence[Transformer], numbers: Sequence[int], rounds: int
) -> list[SpellingSpeed]:
    """Every model writes every number alone, in turns, so that a busy moment hits them all."""
    steps: list[list[int]] = [[] for _ in models]
    times: list[list[float]] = [[] for _ in models]
    for turn in range(rounds + 1):
        for number in numbers:
            for index, model in enumerate(models):
                start = time.perf_counter()
                (hypothesis,) = generate(model, [number])
                if turn:  # the first one warms up
                    times[index].append(time.perf_counter() - start)
                    steps[index].append(hypothesis.steps)
    return [
        SpellingSpeed(statistics.mean(made), 1000 * statistics.median(taken))
        for made, taken in zip(steps, times, strict=True)
    ]


def heading(text: str) -> None:
    print(f"\n\x1b[1m{text}\x1b[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


def show(order: GenerationOrder, words: Sequence[str], title: str) -> None:
    print(f"  {title}\n")
    for line in draw_steps(order, words, width=100, color=sys.stdout.isatty()).splitlines():
        print(f"    {line}")
    print()


def main(updates: int = 700, examples: int = 500, rounds: int = 5) -> None:
    torch.set_num_threads(1)  # products this small gain nothing from a second one

    heading("One sentence, three orders: h directions x c tokens of each per step")
    for order in ORDERS:
        show(order, SENTENCE, f"{order}: {order.steps(len(SENTENCE))} steps")

    heading("A tiny model of each learns to spell numbers")
    random = np.random.default_rng(0)
    unseen = draw_numbers(random, examples, held_out=True)
    models, outputs = [], []
    for order in ORDERS:
        print(f"  {order}: {updates} updates ", end="", flush=True)
        start = time.perf_counter()
        models.append(train(order, updates))
        print(f"in {time.perf_counter() - start:.0f} s, ", end="", flush=True)
        outputs.append([words_of(hypothesis) for hypothesis in generate(models[-1], unseen)])
        right = sum(words == spell(n) for words, n in zip(outputs[-1], unseen, strict=True))
        print(f"{right / examples:.1%} of {examples} unseen numbers right")
    same = sum(all(words == line[0] for words in line) for line in zip(*outputs, strict=True))
    print(f"  All three write the same for {same / examples:.1%} of them.")

    number = next(number for number in unseen if len(spell(number)) == 8)
    heading(f"An unseen number, {number:,}, as each of them writes it")
    for model in models:
        (hypothesis,) = generate(model, [number])
        words = words_of(hypothesis)
        verdict = "right" if words == spell(number) else "wrong"
        show(model.order, words, f"{model.order}: {hypothesis.steps} steps, {verdict}")

    long = sorted(unseen, key=lambda number: len(spell(number)))[-20:]
    heading(f"Steps and time to write one of the {len(long)} longest, of up to ten words")
    speeds = measure(models, long, rounds)
    print("  order   steps      time   speed-up")
    for model, speed in zip(models, speeds, strict=True):
        gain = speeds[0].milliseconds / speed.milliseconds
        print(f"  {model.order!s:5} {speed.steps:7.1f} {speed.milliseconds:6.1f} ms {gain:9.2f}x")
    print(
        "\n  PyTorch engine, float32, greedy search (beam 1), one number at a time, one thread;"
        f"\n  the median of {rounds} rounds in which the models take turns, after one to warm up."
    )


if __name__ == "__main__":
    main()
