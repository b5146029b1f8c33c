"""Contrastive agreement: does a model prefer the right verb to the wrong one, and how far away?

A pair is a source and two translations that differ in the number of one verb (LingEval97, Sennrich
2017). A model is right if it gives the correct one the higher probability, under its own generation
order. Accuracy is shown by the distance between verb and subject: a model that cannot look far
falls off with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bothends import __version__
from bothends.drawing.figure_file import write_figure
from bothends.errors import BothendsError
from bothends.evaluation.analyses.subject import lowercase_words, subject_distance
from bothends.evaluation.bench.plots import COLOURS, MARKERS, load_pyplot
from bothends.evaluation.parallel_lines import read_aligned, read_lines
from bothends.metrics.significance import Interval
from bothends.progress import progress
from bothends.search.scoring import ForcedScore
from bothends.tables import Table
from bothends.text.lines import Invalid
from bothends.translating.load_options import LoadOptions
from bothends.translator import Translator

#: The first distance of each bin; the last bin has no end.
BINS = (1, 2, 3, 4, 5, 6, 8, 11, 16)
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Pair:
    """A source, its right and its wrong translation, and words from the subject to the verb."""

    source: str
    correct: str
    incorrect: str
    distance: int | None


@dataclass(frozen=True)
class Accuracy:
    """How many of some pairs were right, with Wilson's 95% interval."""

    label: str
    right: int
    pairs: int
    interval: Interval

    @classmethod
    def of(cls, label: str, outcomes: Sequence[bool]) -> Accuracy:
        right = sum(outcomes)
        return cls(label, right, len(outcomes), wilson(right, len(outcomes)))

    @property
    def percent(self) -> float:
        return 100 * self.right / self.pairs


@dataclass(frozen=True)
class Accuracies:
    """One model on all pairs, and by distance; a bin without pairs is left out."""

    name: str
    order: str
    overall: Accuracy
    bins: tuple[Accuracy, ...]

    @property
    def title(self) -> str:
        return f"{self.name} {self.order}".strip()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Accuracies:
        """What `as_json` gave."""

        def accuracy(found: dict[str, Any]) -> Accuracy:
            return Accuracy(**{**found, "interval": Interval(**found["interval"])})

        bins = tuple(map(accuracy, content["bins"]))
        return cls(content["name"], content["order"], accuracy(content["overall"]), bins)


def make_pairs(
    sources: Sequence[str],
    correct: Sequence[str],
    incorrect: Sequence[str],
    distances: Sequence[int] | None = None,
) -> list[Pair]:
    """Pairs with the given distances, or with distances guessed from German text."""
    found: Sequence[int | None]
    if distances is not None:
        found = distances
    else:
        right, wrong = ([line.split() for line in lines] for lines in (correct, incorrect))
        lowercase = lowercase_words(right)
        found = [subject_distance(*each, lowercase) for each in zip(right, wrong, strict=True)]
    return [Pair(*each) for each in zip(sources, correct, incorrect, found, strict=True)]


def read_pairs(
    source: Path, correct: Path, incorrect: Path, distances: Path | None, invalid: Invalid
) -> list[Pair]:
    """The pairs of three parallel files, and of a file of distances if there is one."""
    sources = read_lines(source, invalid)
    right, wrong = (
        read_aligned(path, source, len(sources), invalid) for path in (correct, incorrect)
    )
    if right == wrong:
        raise BothendsError(
            f"{correct} and {incorrect} have the same lines: expected a wrong verb in the second"
        )
    numbers = None
    if distances is not None:
        lines = read_aligned(distances, source, len(sources), invalid)
        numbers = parse_distances(lines, distances)
    return make_pairs(sources, right, wrong, numbers)


def measure(
    models: Sequence[Path], pairs: Sequence[Pair], loading: LoadOptions
) -> list[Accuracies]:
    """The accuracy of each model."""
    results = []
    for directory in models:
        with (
            loading.load(directory) as translator,
            progress(str(directory), "pairs", len(pairs)) as advance,
        ):
            outcomes = []
            for right in judge(translator, pairs):
                outcomes.append(right)
                advance(1)
        order = str(translator.description.order)
        results.append(tally(str(directory), order, pairs, outcomes))
    return results


def judge(translator: Translator, pairs: Sequence[Pair]) -> Iterator[bool]:
    """For each pair, whether its correct translation is the more probable one."""
    both = ((pair.source, text) for pair in pairs for text in (pair.correct, pair.incorrect))
    scores: Iterator[ForcedScore] = translator.stream_scores(both)
    for correct in scores:
        yield correct.logprob > next(scores).logprob


def tally(name: str, order: str, pairs: Sequence[Pair], outcomes: Sequence[bool]) -> Accuracies:
    """Accuracy over all pairs and in each bin of distances, shortest first."""
    bins: dict[str, list[bool]] = {label: [] for label in [*map(_label, BINS), UNKNOWN]}
    for pair, right in zip(pairs, outcomes, strict=True):
        bins[bin_of(pair.distance)].append(right)
    return Accuracies(
        name,
        order,
        Accuracy.of("all", outcomes),
        tuple(Accuracy.of(label, found) for label, found in bins.items() if found),
    )


def bin_of(distance: int | None) -> str:
    """The label of the bin that a distance falls in: `1`, `6-7`, `16+`."""
    if distance is None:
        return UNKNOWN
    return _label(max(start for start in BINS if start <= distance))


def _label(start: int) -> str:
    place = BINS.index(start)
    if place == len(BINS) - 1:
        return f"{start}+"
    last = BINS[place + 1] - 1
    return str(start) if last == start else f"{start}-{last}"


def wilson(right: int, pairs: int) -> Interval:
    """The 95% interval of a share, in percent (Wilson 1927): never outside of 0 to 100."""
    z = 1.959964  # the normal distribution's 97.5% quantile
    share, weight = right / pairs, z * z / pairs
    middle = share + weight / 2
    spread = z * math.sqrt(share * (1 - share) / pairs + weight / (4 * pairs))
    return Interval(
        100 * max(0.0, (middle - spread) / (1 + weight)),
        100 * min(1.0, (middle + spread) / (1 + weight)),
    )


def parse_distances(lines: Sequence[str], path: Path) -> list[int]:
    """Distances, one whole number from 1 on in each line."""
    distances = []
    for number, line in enumerate(lines, start=1):
        try:
            distance = int(line) if line.strip().isdecimal() else 0
        except ValueError:  # thousands of digits, more than Python reads
            distance = 0
        if distance < 1:
            raise BothendsError(
                f"{path}, line {number}: expected a distance from 1 on, not {line[:40]!r}"
            )
        distances.append(distance)
    return distances


def report(results: Sequence[Accuracies], guessed: bool) -> dict[str, Any]:
    """All results as plain data."""
    return {
        "command": "agreement",
        "bothends": __version__,
        "pairs": results[0].overall.pairs,
        "distances": "guessed" if guessed else "given",
        "interval": "Wilson, 95%",
        "systems": [result.as_json() for result in results],
    }


def table(results: Sequence[Accuracies]) -> Table:
    """A line for each distance, a column for each model."""
    headings = ("distance", "pairs", *(result.title for result in results))
    columns = [[*result.bins, result.overall] for result in results]
    lines = tuple(
        (row[0].label, f"{row[0].pairs:,}", *(_cell(each) for each in row))
        for row in zip(*columns, strict=True)
    )
    return Table("Agreement, % right", headings, lines)


def draw_agreement(results: Sequence[Accuracies], path: Path) -> None:
    """Accuracy against distance, a line with intervals for each model."""
    pyplot = load_pyplot()
    with pyplot.rc_context({"svg.hashsalt": "bothends", "font.size": 9}):
        figure, panel = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        for number, result in enumerate(results):
            known = [each for each in result.bins if each.label != UNKNOWN]
            # Beside each other, so that intervals do not hide behind those of another model.
            places = [place + 0.08 * (number - len(results) / 2) for place in range(len(known))]
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(
                places,
                [each.percent for each in known],
                color=colour,
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=1.2,
                label=result.title,
            )
            for place, each in zip(places, known, strict=True):
                interval = [each.interval.low, each.interval.high]
                panel.plot([place] * 2, interval, color=colour, linewidth=0.7)
        labels = [each.label for each in results[0].bins if each.label != UNKNOWN]
        panel.set_xticks(range(len(labels)), labels)
        panel.axhline(50, color="gray", linewidth=0.8, linestyle=":", zorder=0)
        panel.set_xlabel("words from the subject to the verb (dotted: guessing)")
        panel.set_ylabel("% of pairs judged rightly")
        panel.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right center", frameon=False)
        write_figure(figure, path, dpi=150)
        pyplot.close(figure)


def _cell(accuracy: Accuracy) -> str:
    interval = accuracy.interval
    return f"{accuracy.percent:.1f} ({interval.low:.1f} to {interval.high:.1f})"
