"""What details of the beam search are worth: variants of it, on models that are there.

    python experiments/search_variants.py --source valid.en --reference valid.de
        [--model en-pt-2x1 en-pt-1x1] [--beam 4] [--lines 1500] [--json FILE]

Each variant changes one thing of `search/beam.py` towards what the authors of the paper do in their
code, and the last one all of them that need no training (`docs/search.md` explains each):

- `bound`: a sentence goes on until no open hypothesis can beat the worst of the best finished ones,
  and not until as many as the beam are finished.
- `2B candidates`: twice the beam candidates are ranked, over all rows, and may end.
- `words after the end`: an end symbol does not close its block; the words after it count, in the
  logprob and in the length.
- `no end in block 1`: a text has at least as many tokens as a block.
- `source + 50`: the longest text, instead of twice the source and 20.

Reported for each: BLEU and chrF with paired differences from the search as it is, the length of the
output against the references', texts that changed, and processor time. Variants take turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from bothends import __version__
from bothends.engines.protocol import Engine
from bothends.engines.registry import default_engine, load_engine
from bothends.evaluation.bench.machine import this_machine
from bothends.files import write_output
from bothends.metrics.significance import Comparison, compare, resample
from bothends.metrics.sums import bleu, chrf
from bothends.model.bundled import find_model
from bothends.model.directory import read_description
from bothends.order import GenerationOrder, IntArray
from bothends.search import beam as search
from bothends.search.options import SearchOptions
from bothends.tables import Table, print_tables
from bothends.text.vocabulary import SpecialTokens, Vocabularies

SAMPLES = 1000
#: No token: an end symbol that is not one closes no block.
NEVER = -1


@dataclass(frozen=True)
class Variant:
    """What is done in another way than in `search/beam.py`."""

    name: str
    by_bound: bool = False
    twice_the_candidates: bool = False
    words_after_end: bool = False
    no_early_end: bool = False
    source_plus_50: bool = False


AS_IT_IS = Variant("as it is")
VARIANTS = (
    AS_IT_IS,
    Variant("bound", by_bound=True),
    Variant("2B candidates", twice_the_candidates=True),
    Variant("2B candidates, bound", by_bound=True, twice_the_candidates=True),
    Variant("words after the end", words_after_end=True),
    Variant("no end in block 1", no_early_end=True),
    Variant("source + 50", source_plus_50=True),
    Variant("all of them", True, True, True, True, True),
)


def search_variant(
    engine: Engine[Any],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    options: SearchOptions,
    variant: Variant,
) -> search.Hypothesis:
    """The best hypothesis of one sentence `(1, N)`: `beam_search` with switches."""
    beam, size = options.beam, order.block_size
    kept = 2 * beam if variant.twice_the_candidates else beam
    if variant.no_early_end:
        options = replace(options, min_length=size)
    limits = search.sentence_limits(source, special, options, None)
    if variant.source_plus_50:
        limits = (source != special.pad).sum(axis=1) - 1 + 50
    state = engine.encode(source)
    live = search._Live(
        np.arange(1), limits, np.zeros((1, 1)), np.full((1, 1, size), special.start)
    )
    finished = search._Finished(1, order, replace(options, beam=kept))
    for number in count():
        first, after = number * size, (number + 1) * size
        below_minimum, reaches_limit = first < options.min_length, after > limits[0]
        top = engine.step(
            state,
            live.history[:, :, -size:].reshape(-1, size),
            order.block(number),
            # For blocks of several tokens, the authors combine as many words as the beam.
            (kept if size == 1 else beam) + below_minimum,
        )
        if below_minimum or reaches_limit:
            top = search._within_lengths(
                top, first, live, replace(options, beam=kept, n_best=1), special
            )
        closing = NEVER if variant.words_after_end else special.end
        blocks = search.joint_topk(top, kept, closing, special.pad)
        candidates = live.extended(blocks)
        is_end = candidates.tokens == special.end
        pool = finished.pools[0]
        before = len(pool)
        finished.add_ended(live, candidates, is_end)
        if variant.words_after_end:
            pool[before:] = [
                replace(one, score=options.score(one.logprob, after)) for one in pool[before:]
            ]
        if variant.twice_the_candidates:
            # Of the best 2B over all rows, those that go on are the only ones that may.
            best = search._rank(candidates.logprobs)[:, :kept]
            others = np.ones_like(candidates.logprobs, dtype=bool)
            others[0, best[0]] = False
            candidates.logprobs[others] = -np.inf
        candidates.logprobs[is_end.any(axis=2)] = -np.inf
        live, rows = live.pruned(candidates, beam)
        if limits[0] < after:
            finished.add_cut(live, np.array([True]))
            return finished.best()[0][0]
        if variant.by_bound:
            # Logprobs only fall; the longest text that is allowed has the kindest score.
            bound = options.score(float(live.logprobs[0].max()), int(limits[0]))
            best_finished = sorted((one.score for one in pool), reverse=True)[:beam]
            done = bool(pool) and best_finished[-1] >= bound
        else:
            done = len(pool) >= beam
        if done or not (live.logprobs > -np.inf).any():
            return finished.best()[0][0]
        state = engine.select(state, rows)
    raise AssertionError("every sentence reaches its limit")


@dataclass(frozen=True)
class VariantFigures:
    """What one variant did with one model."""

    model: str
    variant: str
    bleu: float
    chrf: float
    #: from the search as it is
    bleu_difference: Comparison | None
    chrf_difference: Comparison | None
    #: tokens of BLEU over those of the references
    length_ratio: float
    changed: int
    steps: float
    milliseconds: float


def measure(
    model: str, sources: Sequence[str], references: Sequence[str], beam: int
) -> list[VariantFigures]:
    directory = find_model(model)
    description = read_description(directory)
    special, order = description.model.special, description.order
    vocabularies = Vocabularies.load(directory, special)
    engine = load_engine(default_engine(directory, None, description), directory)
    options = SearchOptions(beam=beam)
    found: dict[Variant, list[search.Hypothesis]] = {variant: [] for variant in VARIANTS}
    seconds = dict.fromkeys(VARIANTS, 0.0)
    for tokens in vocabularies.source.encode(sources):
        source = np.array([[*tokens, special.end]])
        for variant in VARIANTS:
            begin = time.process_time()
            best = search_variant(engine, order, special, source, options, variant)
            seconds[variant] += time.process_time() - begin
            found[variant].append(best)
    texts = {
        variant: vocabularies.target.decode([one.tokens for one in hypotheses])
        for variant, hypotheses in found.items()
    }
    metrics = (bleu(), chrf())
    statistics = {
        variant: [metric.statistics(lines, references) for metric in metrics]
        for variant, lines in texts.items()
    }
    draws = {
        variant: [
            metric.score(resample(numbers, SAMPLES, seed=0))
            for metric, numbers in zip(metrics, both, strict=True)
        ]
        for variant, both in statistics.items()
    }
    totals = {
        variant: [
            float(metric.score(numbers.sum(axis=0)))
            for metric, numbers in zip(metrics, both, strict=True)
        ]
        for variant, both in statistics.items()
    }
    figures = []
    for variant in VARIANTS:
        differences = [
            compare(
                totals[variant][metric] - totals[AS_IT_IS][metric],
                draws[variant][metric] - draws[AS_IT_IS][metric],
            )
            if variant != AS_IT_IS
            else None
            for metric in range(len(metrics))
        ]
        length, expected = statistics[variant][0].sum(axis=0)[:2]
        figures.append(
            VariantFigures(
                model=model,
                variant=variant.name,
                bleu=totals[variant][0],
                chrf=totals[variant][1],
                bleu_difference=differences[0],
                chrf_difference=differences[1],
                length_ratio=float(length / expected),
                changed=sum(a != b for a, b in zip(texts[variant], texts[AS_IT_IS], strict=True)),
                steps=float(np.mean([one.steps for one in found[variant]])),
                milliseconds=1000 * seconds[variant] / len(sources),
            )
        )
    return figures


def _difference(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    low, high = comparison.interval.low, comparison.interval.high
    return f"{comparison.difference:+.2f} ({low:+.2f} to {high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--model", nargs="+", default=["en-pt-2x1", "en-pt-1x1"])
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sources, references = (
        path.read_text("utf-8").splitlines()[: arguments.lines]
        for path in (arguments.source, arguments.reference)
    )
    figures = [
        each
        for model in arguments.model
        for each in measure(model, sources, references, arguments.beam)
    ]
    cells = tuple(
        (
            each.model,
            each.variant,
            f"{each.bleu:.2f}",
            _difference(each.bleu_difference),
            f"{each.chrf:.2f}",
            _difference(each.chrf_difference),
            f"{each.length_ratio:.3f}",
            str(each.changed),
            f"{each.steps:.2f}",
            f"{each.milliseconds:.1f}",
        )
        for each in figures
    )
    headings = (
        "model",
        "search",
        "BLEU",
        "from as it is",
        "chrF",
        "from as it is",
        "length",
        "changed",
        "steps",
        "ms",
    )
    machine = this_machine()
    data = f"{arguments.reference.parent.name}/{arguments.reference.name}, {len(sources):,} lines"
    notes = [
        f"{data}, beam {arguments.beam}, int8, bothends {__version__}, "
        f"commit {machine.commit}; BLEU {bleu().signature}; chrF {chrf().signature}; "
        f"95% intervals of {SAMPLES:,} bootstrap samples; processor time, one thread"
    ]
    print_tables([Table("Variants of the search", headings, cells)], notes)
    if arguments.json:
        record = {"notes": notes, "machine": asdict(machine), "figures": list(map(asdict, figures))}
        write_output(arguments.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
