"""What it brings that a 1x1 model rereads the beam of a faster one, and what it takes.

    python experiments/rescore.py --source valid.en --reference valid.de [--model en-pt-2x1]
        [--rescore en-pt-1x1] [--beam 4] [--lines 1500] [--json FILE]

Every line is translated by all systems, one right after the other, alone and on one thread: the
fast model, the 1x1 model, and the fast model whose beam both of them rank (`translate --rescore`).
Reported: BLEU and chrF with their paired differences from the fast model and from the 1x1 model,
and processor time per line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bothends import Translator, __version__
from bothends.evaluation.bench.machine import this_machine
from bothends.files import write_output
from bothends.metrics.significance import Comparison, compare, resample
from bothends.metrics.sums import bleu, chrf
from bothends.tables import Table, print_tables

SAMPLES = 1000


@dataclass(frozen=True)
class RescoredSystem:
    name: str
    translator: Translator
    beam: int


@dataclass(frozen=True)
class RescoreFigures:
    """One metric of one system."""

    system: str
    metric: str
    score: float
    from_fast: Comparison
    from_exact: Comparison
    milliseconds: float


def measure(
    systems: Sequence[RescoredSystem],
    fast: int,
    exact: int,
    sources: Sequence[str],
    lines: Sequence[str],
) -> list[RescoreFigures]:
    """`fast` and `exact` are the numbers of the systems that the others are compared with."""
    texts: list[list[str]] = [[] for _ in systems]
    seconds = [0.0] * len(systems)
    for source in sources:
        for number, system in enumerate(systems):
            begin = time.process_time()
            (found,) = system.translator.translate_batch(
                [source], beam=system.beam, split_sentences=False
            )
            seconds[number] += time.process_time() - begin
            texts[number].append(found.text)
    figures = []
    for metric in (bleu(), chrf()):
        statistics = [metric.statistics(each, lines) for each in texts]
        draws = [metric.score(resample(each, SAMPLES, seed=0)) for each in statistics]
        scores = [float(metric.score(each.sum(axis=0))) for each in statistics]
        for number, system in enumerate(systems):
            differences = [
                compare(scores[number] - scores[other], draws[number] - draws[other])
                for other in (fast, exact)
            ]
            figures.append(
                RescoreFigures(
                    system=system.name,
                    metric=metric.title,
                    score=scores[number],
                    from_fast=differences[0],
                    from_exact=differences[1],
                    milliseconds=1000 * seconds[number] / len(sources),
                )
            )
    return figures


def _show(each: Comparison) -> str:
    return f"{each.difference:+.2f} ({each.interval.low:+.2f} to {each.interval.high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--model", default="en-pt-2x1")
    parser.add_argument("--rescore", default="en-pt-1x1")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--engine", choices=["native", "onnx"], help="default: as in `translate`")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sources, references = (
        path.read_text("utf-8").splitlines()[: arguments.lines]
        for path in (arguments.source, arguments.reference)
    )
    fast, exact = (
        Translator.load(model, threads=1, engine=arguments.engine)
        for model in (arguments.model, arguments.rescore)
    )
    beam = arguments.beam
    systems = [
        RescoredSystem(f"{arguments.model}, beam {beam}", fast, beam),
        RescoredSystem(f"{arguments.rescore}, beam {beam}", exact, beam),
        RescoredSystem(f"{arguments.model}, rescored, beam {beam}", fast.rescored_by(exact), beam),
        RescoredSystem(f"{arguments.rescore}, beam {2 * beam}", exact, 2 * beam),
        RescoredSystem(f"{arguments.model}, beam 1", fast, 1),
        RescoredSystem(f"{arguments.rescore}, beam 1", exact, 1),
    ]
    figures = measure(systems, 0, 1, sources, references)
    cells = tuple(
        (
            each.system,
            each.metric,
            f"{each.score:.2f}",
            _show(each.from_fast),
            _show(each.from_exact),
            f"{each.milliseconds:.2f}",
        )
        for each in figures
    )
    headings = ("system", "metric", "score", "from the first", "from the second", "ms")
    machine = this_machine()
    data = f"{arguments.reference.parent.name}/{arguments.reference.name}, {len(sources):,} lines"
    notes = [
        f"{data}, engine {fast.engine_name}, bothends {__version__}, commit {machine.commit}; "
        f"BLEU {bleu().signature}; chrF {chrf().signature}; 95% intervals of {SAMPLES:,} bootstrap "
        "samples; processor time, one thread, one line at a time"
    ]
    print_tables([Table("A beam that a second model rereads", headings, cells)], notes)
    if arguments.json:
        record = {"notes": notes, "machine": asdict(machine), "figures": list(map(asdict, figures))}
        write_output(arguments.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
