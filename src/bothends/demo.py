"""A tour of the bundled models, on the runtime alone.

Translates everyday sentences with every model, which have the same network and differ in their
order. Then how one sentence is written from left to right and from both ends, and what that saves,
measured in one run and in turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bothends.drawing import draw_steps
from bothends.order import GenerationOrder
from bothends.translating.translation import Translation
from bothends.translator import Translator

SENTENCES = [
    "Where is the nearest station?",
    "I would like a cup of coffee, please.",
    "What time does the bus leave?",
    "Could you speak more slowly, please?",
    "I'm tired and I want to go home.",
    "My brother lives in a small house near the river.",
]
#: Left to right first: the others are compared with it.
MODELS = ("en-pt-1x1", "en-pt-2x1")


@dataclass(frozen=True)
class Speed:
    """What it takes to translate one of the sentences."""

    steps: float  # on average
    milliseconds: float  # on average over the sentences, each by its median


def measure(translators: Sequence[Translator], beam: int, rounds: int) -> list[Speed]:
    """Every model translates every sentence alone, in turns: a busy moment hits them all."""
    seconds = [[[0.0] * rounds for _ in SENTENCES] for _ in translators]
    steps = [[0] * len(SENTENCES) for _ in translators]
    for turn in range(-1, rounds):  # the first one warms up
        for number, sentence in enumerate(SENTENCES):
            for model, translator in enumerate(translators):
                start = time.perf_counter()
                translation = translator.translate(sentence, beam=beam)
                steps[model][number] = translation.steps
                if turn >= 0:
                    seconds[model][number][turn] = time.perf_counter() - start
    return [
        Speed(
            statistics.mean(made),
            1000 * statistics.mean(statistics.median(turns) for turns in taken),
        )
        for made, taken in zip(steps, seconds, strict=True)
    ]


def heading(text: str) -> None:
    print(f"\n\x1b[1m{text}\x1b[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


def show_steps(order: GenerationOrder, translation: Translation) -> None:
    pieces = [piece.replace("▁", " ").strip() or "▁" for piece in translation.pieces]
    print(f"  {order}: {translation.steps} steps\n")
    for line in draw_steps(order, pieces, width=100, color=sys.stdout.isatty()).splitlines():
        print(f"    {line}")
    print()


def show(rounds: int = 20) -> None:
    """Print the whole tour."""
    # Like for like: their shortlists differ in size.
    translators = [Translator.load(name, threads=1, shortlist=False) for name in MODELS]
    orders = [translator.description.order for translator in translators]

    heading("English to Portuguese, left to right and from both ends")
    found = [translator.translate(SENTENCES) for translator in translators]
    for english, *translations in zip(SENTENCES, *found, strict=True):
        print(f"  {english}")
        for order, translation in zip(orders, translations, strict=True):
            print(f"    {order}  {translation.text}")
        print()

    heading("How they are written: an arrow marks what a step has written")
    for order, translator in zip(orders, translators, strict=True):
        show_steps(order, translator.translate(SENTENCES[0]))

    heading("Steps and time for a sentence, one at a time, one thread, int8, all words")
    print("  beam   order   steps      time   speed-up")
    for beam in (1, 4):
        speeds = measure(translators, beam, rounds)
        for order, speed in zip(orders, speeds, strict=True):
            gain = speeds[0].milliseconds / speed.milliseconds
            print(
                f"  {beam:4}   {order!s:5} {speed.steps:7.1f} {speed.milliseconds:6.1f} ms"
                f" {gain:9.2f}x"
            )
    print(
        f"\n  The same {len(SENTENCES)} sentences for all; medians of {rounds} rounds in which the"
        " models take turns."
    )
    print('\nYour own: echo "Can you help me?" | bothends translate\n')
