"""How well gaps are filled: spans of words are taken out of references, and models put them back.

    python experiments/fill.py --source test.en --reference test.de [--lines 150] [--json FILE]

A span of 1, 2, 4 or 8 words is removed from a reference that has at least one more word on either
side. Three ways of filling are compared, with the same search and beam:

- `2x1`: written from both ends, with the given end in view.
- `1x1`: written from left to right, then held to the given end, which decides between the results.
- `1x1, prefix only`: the beginning is continued, and the first words of what comes are the filling.

Reported per length of the span: exact matches; chrF of the spans; the right seam, i.e. how often
the word after the gap is what the 1x1 model would have written next (the judge is the same for all,
and reads from left to right, which suits 1x1); and processor time per filling on one thread.
Intervals are from a paired bootstrap over lines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from bothends import Translator, __version__
from bothends.engines.registry import load_engine
from bothends.errors import BothendsError
from bothends.metrics.significance import Comparison, Interval, compare, resample
from bothends.metrics.sums import Numbers, chrf
from bothends.model.bundled import find_model
from bothends.model.directory import read_description
from bothends.tables import Table, print_tables
from bothends.text.vocabulary import Vocabularies

SPANS = (1, 2, 4, 8)
SAMPLES = 1000

#: Exact matches and chrF of bootstrap samples.
Draws = tuple[Numbers, Numbers]


@dataclass(frozen=True)
class Gap:
    """A reference without some of its words."""

    source: str
    prefix: str
    span: str
    suffix: str


@dataclass(frozen=True)
class Figures:
    """What one way of filling did for spans of one length."""

    system: str
    words: int
    gaps: int
    exact: float
    exact_interval: Interval
    chrf: float
    chrf_interval: Interval
    seam: float
    milliseconds: float
    #: exact matches and chrF of the 2x1 model minus these, on the same lines
    ahead: tuple[Comparison, Comparison] | None = None


def cut_gaps(
    sources: Sequence[str], references: Sequence[str], words: int, count: int, seed: int
) -> list[Gap]:
    """At most `count` gaps of so many words, each at a random place inside its reference."""
    random = np.random.default_rng((seed, words))
    long_enough = [i for i, line in enumerate(references) if len(line.split()) >= words + 2]
    gaps = []
    for i in random.permutation(long_enough)[:count]:
        parts = references[i].split()
        first = int(random.integers(1, len(parts) - words))
        before, span, after = parts[:first], parts[first : first + words], parts[first + words :]
        gaps.append(Gap(sources[i], " ".join(before), " ".join(span), " ".join(after)))
    return gaps


class Judge:
    """A model that reads a text and says what it would have written at a place."""

    def __init__(self, model: str) -> None:
        directory = find_model(model)
        description = read_description(directory)
        self.special, self.order = description.model.special, description.order
        self.vocabularies = Vocabularies.load(directory, self.special)
        self.engine = load_engine("onnx", directory)

    def would_go_on(self, gap: Gap, middle: str) -> bool:
        """Is the first token after the gap the model's first choice?"""
        (source,) = self.vocabularies.source.encode([gap.source])
        before, whole = self.vocabularies.target.encode(
            [" ".join([gap.prefix, *middle.split()]), " ".join([gap.prefix, middle, gap.suffix])]
        )
        slots = self.order.target_slots([whole], self.special.end, self.special.pad)
        state = self.engine.encode(np.array([[*source, self.special.end]]))
        fed = self.order.shift(slots, self.special.start)
        best = self.engine.step(state, fed, self.order.whole(slots.shape[1]), 1).ids[0, :, 0]
        place = len(before)
        return bool(best[place] == slots[0, place])


def fill(translator: Translator, gap: Gap, words: int, beam: int, prefix_only: bool) -> str:
    """The words that a model puts into the gap."""
    suffix = "" if prefix_only else " " + gap.suffix
    try:
        (best,) = translator.fill(gap.source, gap.prefix + " ", suffix, beam=beam)
    except BothendsError:
        return ""
    return " ".join(best.middle.split()[: words if prefix_only else None])


def measure(
    system: str,
    gaps: Sequence[Gap],
    middles: Sequence[str],
    seconds: float,
    judge: Judge,
    words: int,
) -> tuple[Figures, Draws]:
    spans = [gap.span for gap in gaps]
    hits = np.array([[float(m == s), 1.0] for m, s in zip(middles, spans, strict=True)])
    metric = chrf()
    statistics = metric.statistics(list(middles), spans)
    seams = [judge.would_go_on(gap, middle) for gap, middle in zip(gaps, middles, strict=True)]
    draws = resample(np.hstack([hits, statistics]), SAMPLES, seed=0)
    exact, quality = 100 * draws[:, 0] / draws[:, 1], metric.score(draws[:, 2:])
    figures = Figures(
        system=system,
        words=words,
        gaps=len(gaps),
        exact=100 * float(hits[:, 0].mean()),
        exact_interval=Interval.of(exact),
        chrf=float(metric.score(statistics.sum(axis=0))),
        chrf_interval=Interval.of(quality),
        seam=100 * float(np.mean(seams)),
        milliseconds=1000 * seconds / len(gaps),
    )
    return figures, (exact, quality)


def compared(best: tuple[Figures, Draws], other: tuple[Figures, Draws]) -> Figures:
    """Figures of `other`, with how far `best` is ahead of it."""
    (ours, our_draws), (theirs, their_draws) = best, other
    exact = compare(ours.exact - theirs.exact, our_draws[0] - their_draws[0])
    quality = compare(ours.chrf - theirs.chrf, our_draws[1] - their_draws[1])
    return replace(theirs, ahead=(exact, quality))


def show(value: float, interval: Interval, form: str = ".1f") -> str:
    return f"{value:{form}} ({interval.low:{form}} to {interval.high:{form}})"


def table(figures: Sequence[Figures]) -> Table:
    return Table(
        "Spans put back into references",
        (
            "words",
            "filled by",
            "gaps",
            "exact %",
            "chrF",
            "seam %",
            "ms",
            "2x1 is ahead, exact",
            "chrF",
        ),
        tuple(
            (
                str(each.words),
                each.system,
                str(each.gaps),
                show(each.exact, each.exact_interval),
                show(each.chrf, each.chrf_interval),
                f"{each.seam:.1f}",
                f"{each.milliseconds:.0f}",
                show(each.ahead[0].difference, each.ahead[0].interval, "+.1f")
                if each.ahead
                else "",
                show(each.ahead[1].difference, each.ahead[1].interval, "+.1f")
                if each.ahead
                else "",
            )
            for each in figures
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=150, help="gaps of each length")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--both-ends", default="en-de-2x1", help="model that sees both ends")
    parser.add_argument("--left-to-right", default="en-de-1x1", help="model that does not")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sources = arguments.source.read_text("utf-8").splitlines()
    references = arguments.reference.read_text("utf-8").splitlines()
    systems = [
        ("2x1", Translator.load(arguments.both_ends, threads=1), False),
        ("1x1", Translator.load(arguments.left_to_right, threads=1), False),
        ("1x1, prefix only", Translator.load(arguments.left_to_right, threads=1), True),
    ]
    judge = Judge(arguments.left_to_right)
    figures: list[Figures] = []
    for words in SPANS:
        gaps = cut_gaps(sources, references, words, arguments.lines, arguments.seed)
        if not gaps:
            continue
        measured = []
        for name, translator, prefix_only in systems:
            begin = time.process_time()
            middles = [fill(translator, gap, words, arguments.beam, prefix_only) for gap in gaps]
            seconds = time.process_time() - begin
            measured.append(measure(name, gaps, middles, seconds, judge, words))
        spans = [gap.span for gap in gaps]
        best, *others = measured
        figures += [best[0], *(compared(best, other) for other in others)]
        figures.append(measure("the reference", gaps, spans, 0.0, judge, words)[0])
    notes = [
        f"{arguments.reference.name}, beam {arguments.beam}, seed {arguments.seed}, "
        f"bothends {__version__}; chrF {chrf().signature}; "
        f"95% intervals of {SAMPLES:,} bootstrap samples; processor time, one thread"
    ]
    print_tables([table(figures)], notes)
    if arguments.json:
        record = {"notes": notes, "figures": [asdict(each) for each in figures]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
