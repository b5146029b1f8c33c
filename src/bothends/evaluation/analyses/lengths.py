"""Quality and speed by the length of the source: the test set sorted and cut into equal bins.

Every sentence is translated alone, by one system right after the other, in an order that is
shuffled for each: what slows the machine down for a while slows all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bothends import __version__
from bothends.drawing.figure_file import write_figure
from bothends.errors import UsageError
from bothends.evaluation.bench.plots import COLOURS, MARKERS, load_pyplot
from bothends.evaluation.evaluate import System, evaluate
from bothends.metrics.significance import Interval
from bothends.metrics.sums import Metric
from bothends.progress import progress
from bothends.tables import Table
from bothends.translating.load_options import LoadOptions
from bothends.translating.translation import TranslationOptions
from bothends.translator import Translator

Translate = Callable[[str], str]


@dataclass(frozen=True)
class Timed:
    """A system's translations, and the seconds that each took; no seconds if it was not timed."""

    name: str
    lines: Sequence[str]
    seconds: Sequence[float] | None = None


@dataclass(frozen=True)
class Cell:
    """One system in one bin."""

    score: float
    interval: Interval | None
    #: of a sentence; a median, which a machine that pauses for a second leaves alone
    milliseconds: float | None
    #: the first system's time over this one's, sentence by sentence; the median
    speedup: float | None


@dataclass(frozen=True)
class Bin:
    """Sentences of similar length, in words, and each system's cell."""

    shortest: int
    longest: int
    sentences: int
    cells: tuple[Cell, ...]

    @property
    def label(self) -> str:
        if self.shortest == self.longest:
            return str(self.shortest)
        return f"{self.shortest}-{self.longest}"


@dataclass(frozen=True)
class Lengths:
    """All bins, the shortest sentences first."""

    systems: tuple[str, ...]
    metric: Metric
    samples: int
    seed: int
    bins: tuple[Bin, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "command": "lengths",
            "bothends": __version__,
            "systems": self.systems,
            "metric": self.metric.name,
            "signature": self.metric.signature,
            "bootstrap": {"samples": self.samples, "seed": self.seed} if self.samples else None,
            "bins": [asdict(each) for each in self.bins],
        }


def split_by_length(sources: Sequence[str], count: int) -> list[list[int]]:
    """Indices of sentences in `count` bins of equal size, give or take one, by words of the source.

    Sentences of one length keep their order; they may fall into two bins.
    """
    if not 1 <= count <= len(sources):
        raise UsageError(f"{count} bins of {len(sources)} sentences: expected 1 to {len(sources)}")
    ordered = sorted(range(len(sources)), key=lambda index: len(sources[index].split()))
    edges = [len(sources) * number // count for number in range(count + 1)]
    return [ordered[begin:end] for begin, end in pairwise(edges)]


def translate_in_turns(
    translators: Sequence[Translate], sources: Sequence[str], seed: int = 0
) -> Iterator[list[tuple[str, float]]]:
    """For each sentence, each system's translation and its seconds."""
    generator = random.Random(seed)
    for translate in translators:
        translate(sources[0])  # warm-up: the first call includes one-time work
    turns = list(range(len(translators)))
    for source in sources:
        generator.shuffle(turns)
        found: dict[int, tuple[str, float]] = {}
        for turn in turns:
            started = perf_counter()
            text = translators[turn](source)
            found[turn] = text, perf_counter() - started
        yield [found[turn] for turn in range(len(translators))]


def measure(
    models: Sequence[Path],
    sources: Sequence[str],
    options: TranslationOptions,
    loading: LoadOptions,
    seed: int = 0,
) -> list[Timed]:
    """Each model's translations and times, one sentence at a time."""
    if not models:
        return []
    translators = [loading.load(directory) for directory in models]
    calls = [partial(_text, translator, options) for translator in translators]
    turns = []
    with progress("translate", "lines", len(sources)) as advance:
        for turn in translate_in_turns(calls, sources, seed):
            turns.append(turn)
            advance(1)
    return [
        Timed(str(directory), *zip(*(turn[number] for turn in turns), strict=True))
        for number, directory in enumerate(models)
    ]


def _text(translator: Translator, options: TranslationOptions, line: str) -> str:
    return translator.translate(line, options, split_sentences=False).text


def by_length(
    systems: Sequence[Timed],
    sources: Sequence[str],
    references: Sequence[str],
    metric: Metric,
    count: int = 10,
    samples: int = 1000,
    seed: int = 0,
) -> Lengths:
    """Score, and speed where it was measured, of all systems in each bin."""
    bins = []
    for indices in split_by_length(sources, count):
        chosen = [
            System(each.name, each.name, [each.lines[index] for index in indices])
            for each in systems
        ]
        texts = [references[index] for index in indices]
        lines = [sources[index] for index in indices]
        evaluation = evaluate(chosen, "", texts, [metric], samples, seed, lines)
        cells = []
        for system, result in zip(systems, evaluation.results, strict=True):
            figure = result.figures[metric.name]
            milliseconds = speedup = None
            if system.seconds is not None:
                milliseconds = 1000 * median(system.seconds[index] for index in indices)
            if system.seconds is not None and (first := systems[0].seconds) is not None:
                speedup = median(first[index] / system.seconds[index] for index in indices)
            cells.append(Cell(figure.score, figure.interval, milliseconds, speedup))
        words = [len(sources[index].split()) for index in indices]
        bins.append(Bin(min(words), max(words), len(indices), tuple(cells)))
    return Lengths(tuple(each.name for each in systems), metric, samples, seed, tuple(bins))


def table(lengths: Lengths) -> Table:
    """A line for each bin."""
    headings = ["source words", "sentences"]
    for name in lengths.systems:
        headings += [f"{name} {lengths.metric.title}", "ms", "speed-up"]
    lines = []
    for each in lengths.bins:
        cells = [each.label, str(each.sentences)]
        for cell in each.cells:
            score = f"{cell.score:.1f}"
            if cell.interval is not None:
                score += f" ({cell.interval.low:.1f} to {cell.interval.high:.1f})"
            cells += [
                score,
                "-" if cell.milliseconds is None else f"{cell.milliseconds:.1f}",
                "-" if cell.speedup is None else f"{cell.speedup:.2f}",
            ]
        lines.append(tuple(cells))
    return Table("By length of the source", tuple(headings), tuple(lines))


def draw_lengths(lengths: Lengths, path: Path) -> None:
    """Quality on the left, speed-up on the right where it was measured: a line for each system."""
    pyplot = load_pyplot()
    timed = any(cell.speedup is not None for cell in lengths.bins[0].cells)
    places = range(len(lengths.bins))
    with pyplot.rc_context({"svg.hashsalt": "bothends", "font.size": 9}):
        figure, panels = pyplot.subplots(
            1, 1 + timed, figsize=(2.2 + 4 * (1 + timed), 3.2), squeeze=False, layout="constrained"
        )
        for number, name in enumerate(lengths.systems):
            cells = [each.cells[number] for each in lengths.bins]
            style = dict(
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=1.2,
            )
            panels[0][0].plot(places, [cell.score for cell in cells], label=name, **style)
            if all(cell.interval is not None for cell in cells):
                panels[0][0].fill_between(
                    places,
                    [cell.interval.low for cell in cells if cell.interval],
                    [cell.interval.high for cell in cells if cell.interval],
                    color=style["color"],
                    alpha=0.12,
                    linewidth=0,
                )
            if timed:
                panels[0][1].plot(places, [cell.speedup for cell in cells], **style)
        titles = [lengths.metric.title, f"speed-up against {lengths.systems[0]}"]
        for panel, title in zip(panels[0], titles, strict=False):
            panel.set_title(title)
            panel.set_xticks(places, [each.label for each in lengths.bins], rotation=45)
            panel.set_xlabel("words of the source")
            panel.spines[["top", "right"]].set_visible(False)
        if timed:
            panels[0][1].set_ylim(bottom=0)
            panels[0][1].axhline(1, color="gray", linewidth=0.8, linestyle=":", zorder=0)
        figure.legend(loc="outside right center", frameon=False)
        write_figure(figure, path, dpi=150)
        pyplot.close(figure)
