"""How well gaps are filled: spans of words are taken out of references, and models put them back.

    python experiments/fill.py --source test.en --reference test.de [--both-ends en-pt-2x1]
        [--left-to-right en-pt-1x1] [--lines 150] [--beam 1 4] [--json FILE]

Any two models of one vocabulary, and any two files of lines. A span of 1, 2, 4 or 8 words is
removed from a reference that has at least one more word on either side. Three ways of filling are
compared, with the same search and beam:

- `2x1`: written from both ends, with the given end in view.
- `1x1`: written from left to right, then held to the given end, which decides between the results.
- `1x1, prefix only`: the beginning is continued, and the first words of what comes are the filling.

Reported per length of the span: exact matches; chrF of the spans, and BLEU where they have four
words or more; the seams; and processor time per filling on one thread. The systems take turns, gap
by gap, so that a busy machine slows all of them down. The judge of the seams is the 1x1 model,
which reads from left to right, and that suits 1x1. Left seam: how often the first token of the
filling is what the judge would have written after the prefix. Right seam: how often it would have
gone on with the given word after the gap. Intervals are from a paired bootstrap over lines.
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
from bothends.evaluation.bench.machine import this_machine
from bothends.files import write_output
from bothends.metrics.significance import Comparison, Interval, compare, resample
from bothends.metrics.sums import Numbers, bleu, chrf
from bothends.model.bundled import find_model
from bothends.model.directory import read_description
from bothends.tables import Table, print_tables
from bothends.text.vocabulary import Vocabularies

SPANS = (1, 2, 4, 8)
SAMPLES = 1000
#: Words from which on BLEU, which counts up to four in a row, says something of a span.
BLEU_WORDS = 4

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
class FillFigures:
    """What one way of filling did for spans of one length."""

    system: str
    words: int
    gaps: int
    exact: float
    exact_interval: Interval
    chrf: float
    chrf_interval: Interval
    bleu: float | None
    bleu_interval: Interval | None
    left_seam: float
    right_seam: float
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

    def seams(self, gap: Gap, middle: str) -> tuple[bool, bool]:
        """Are the first token of the filling, and the first after it, the model's first choices?"""
        (source,) = self.vocabularies.source.encode([gap.source])
        left, before, whole = self.vocabularies.target.encode(
            [
                gap.prefix,
                " ".join([gap.prefix, *middle.split()]),
                " ".join([gap.prefix, *middle.split(), gap.suffix]),
            ]
        )
        slots = self.order.target_slots([whole], self.special.end, self.special.pad)
        state = self.engine.encode(np.array([[*source, self.special.end]]))
        fed = self.order.shift(slots, self.special.start)
        best = self.engine.step(state, fed, self.order.whole(slots.shape[1]), 1).ids[0, :, 0]
        first, second = (bool(best[place] == slots[0, place]) for place in map(len, (left, before)))
        return first, second


def fill(translator: Translator, gap: Gap, words: int, beam: int, prefix_only: bool) -> str:
    """The words that a model puts into the gap."""
    suffix = "" if prefix_only else " " + gap.suffix
    try:
        (best,) = translator.fill(gap.source, gap.prefix + " ", suffix, beam=beam)
    except BothendsError:
        return ""
    return " ".join(best.middle.split()[: words if prefix_only else None])


@dataclass(frozen=True)
class FillingSystem:
    """A way of filling."""

    name: str
    translator: Translator
    prefix_only: bool = False


def fill_all(
    systems: Sequence[FillingSystem], gaps: Sequence[Gap], words: int, beam: int
) -> list[tuple[list[str], float]]:
    """What each system puts into the gaps, and its seconds of processor time."""
    middles: list[list[str]] = [[] for _ in systems]
    seconds = [0.0] * len(systems)
    for gap in gaps:
        for number, system in enumerate(systems):
            begin = time.process_time()
            middles[number].append(fill(system.translator, gap, words, beam, system.prefix_only))
            seconds[number] += time.process_time() - begin
    return list(zip(middles, seconds, strict=True))


def measure(
    system: str,
    gaps: Sequence[Gap],
    middles: Sequence[str],
    seconds: float,
    judge: Judge,
    words: int,
) -> tuple[FillFigures, Draws]:
    spans = [gap.span for gap in gaps]
    hits = np.array([[float(m == s), 1.0] for m, s in zip(middles, spans, strict=True)])
    characters, phrases = chrf(), bleu()
    of_characters, of_phrases = (m.statistics(middles, spans) for m in (characters, phrases))
    seams = np.array([judge.seams(gap, m) for gap, m in zip(gaps, middles, strict=True)])
    draws = resample(np.hstack([hits, of_characters, of_phrases]), SAMPLES, seed=0)
    after = 2 + of_characters.shape[1]
    exact, quality = 100 * draws[:, 0] / draws[:, 1], characters.score(draws[:, 2:after])
    long_enough = words >= BLEU_WORDS
    figures = FillFigures(
        system=system,
        words=words,
        gaps=len(gaps),
        exact=100 * float(hits[:, 0].mean()),
        exact_interval=Interval.of(exact),
        chrf=float(characters.score(of_characters.sum(axis=0))),
        chrf_interval=Interval.of(quality),
        bleu=float(phrases.score(of_phrases.sum(axis=0))) if long_enough else None,
        bleu_interval=Interval.of(phrases.score(draws[:, after:])) if long_enough else None,
        left_seam=100 * float(seams[:, 0].mean()),
        right_seam=100 * float(seams[:, 1].mean()),
        milliseconds=1000 * seconds / len(gaps),
    )
    return figures, (exact, quality)


def compared(best: tuple[FillFigures, Draws], other: tuple[FillFigures, Draws]) -> FillFigures:
    """The figures of `other`, with how far `best` is ahead of it."""
    (ours, our_draws), (theirs, their_draws) = best, other
    exact = compare(ours.exact - theirs.exact, our_draws[0] - their_draws[0])
    quality = compare(ours.chrf - theirs.chrf, our_draws[1] - their_draws[1])
    return replace(theirs, ahead=(exact, quality))


def show(value: float | None, interval: Interval | None, form: str = ".1f") -> str:
    if value is None or interval is None:
        return ""
    return f"{value:{form}} ({interval.low:{form}} to {interval.high:{form}})"


def show_difference(comparison: Comparison) -> str:
    return show(comparison.difference, comparison.interval, "+.1f")


HEADINGS = (
    "words",
    "filled by",
    "gaps",
    "exact %",
    "chrF",
    "BLEU",
    "left seam %",
    "right seam %",
    "ms",
    "2x1 is ahead, exact",
    "chrF",
)


def table(figures: Sequence[FillFigures], beam: int) -> Table:
    lines = tuple(
        (
            str(each.words),
            each.system,
            str(each.gaps),
            show(each.exact, each.exact_interval),
            show(each.chrf, each.chrf_interval),
            show(each.bleu, each.bleu_interval),
            f"{each.left_seam:.1f}",
            f"{each.right_seam:.1f}",
            f"{each.milliseconds:.0f}",
            *(map(show_difference, each.ahead) if each.ahead else ("", "")),
        )
        for each in figures
    )
    return Table(f"Spans put back into references, beam {beam}", HEADINGS, lines)


def measure_beam(
    systems: Sequence[FillingSystem],
    judge: Judge,
    sources: Sequence[str],
    references: Sequence[str],
    count: int,
    beam: int,
    seed: int,
) -> list[FillFigures]:
    """The figures of all systems for spans of all lengths."""
    figures: list[FillFigures] = []
    for words in SPANS:
        gaps = cut_gaps(sources, references, words, count, seed)
        if not gaps:
            continue
        filled = fill_all(systems, gaps, words, beam)
        best, *others = (
            measure(system.name, gaps, middles, seconds, judge, words)
            for system, (middles, seconds) in zip(systems, filled, strict=True)
        )
        figures += [best[0], *(compared(best, other) for other in others)]
        spans = [gap.span for gap in gaps]
        figures.append(measure("the reference", gaps, spans, 0.0, judge, words)[0])
    return figures


def read_lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=150, help="gaps of each length")
    parser.add_argument("--beam", type=int, nargs="+", default=[4])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--both-ends", default="en-pt-2x1", help="model that sees both ends")
    parser.add_argument("--left-to-right", default="en-pt-1x1", help="model that does not")
    parser.add_argument("--engine", choices=["native", "onnx"], help="default: as in `translate`")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sources, references = read_lines(arguments.source), read_lines(arguments.reference)
    if len(sources) != len(references):
        parser.error(f"{len(sources)} sources, but {len(references)} references")
    from_both_ends, from_left = (
        Translator.load(model, threads=1, engine=arguments.engine)
        for model in (arguments.both_ends, arguments.left_to_right)
    )
    order = str(from_both_ends.description.order)
    if str(from_left.description.order) != "1x1":
        parser.error(f"--left-to-right: {arguments.left_to_right} is not a 1x1 model")
    systems = [
        FillingSystem(order, from_both_ends),
        FillingSystem("1x1", from_left),
        FillingSystem("1x1, prefix only", from_left, prefix_only=True),
    ]
    judge = Judge(arguments.left_to_right)
    machine = this_machine()
    notes = [
        f"{arguments.reference.parent.name}/{arguments.reference.name}, "
        f"{arguments.both_ends} and {arguments.left_to_right}, engine {from_left.engine_name}, "
        f"seed {arguments.seed}, bothends {__version__}, commit {machine.commit}; "
        f"chrF {chrf().signature}; BLEU {bleu().signature}; "
        f"95% intervals of {SAMPLES:,} bootstrap samples; processor time, one thread"
    ]
    by_beam = {
        beam: measure_beam(
            systems, judge, sources, references, arguments.lines, beam, arguments.seed
        )
        for beam in arguments.beam
    }
    print_tables([table(figures, beam) for beam, figures in by_beam.items()], notes)
    if arguments.json:
        record = {
            "notes": notes,
            "machine": asdict(machine),
            "figures": {beam: list(map(asdict, figures)) for beam, figures in by_beam.items()},
        }
        write_output(arguments.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
