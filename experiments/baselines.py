"""What a summary has to beat, and what gives away one that does not read its source.

    python experiments/baselines.py --source test.sentence --reference test.compression \\
        --examples valid.compression --output DIR

writes to DIR
    lead.txt        the first N words of each source, N the best of 1 to 40 for these references
    constant.txt    the same line for all: the example that is nearest to the others
    shuffled.txt    the sources, each in the place of another, for the model to summarize

    python experiments/baselines.py --judge FILE... --source test.sentence

prints, for each file of summaries, how many differ from each other, and how many of their words
are words of their source.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bothends.metrics.sums import rouge
from bothends.text.pairs import read_lines

LONGEST_LEAD = 40
#: How many of the examples may become the constant.
CANDIDATES = 100


def leads(sources: Sequence[str], words: int) -> list[str]:
    return [" ".join(line.split()[:words]) for line in sources]


def best_lead(sources: Sequence[str], references: Sequence[str]) -> int:
    """The number of words that scores best. Chosen on the test set, in the baseline's favour."""
    metric = rouge("L")
    scores = [metric.of(leads(sources, n), references) for n in range(1, LONGEST_LEAD + 1)]
    return 1 + int(np.argmax(scores))


def nearest_to_all(examples: Sequence[str]) -> str:
    metric = rouge("L")
    candidates = sorted(set(examples[:CANDIDATES]))
    scores = [metric.of([line] * len(examples), examples) for line in candidates]
    return candidates[int(np.argmax(scores))]


def share_of_copies(sources: Sequence[str], summaries: Sequence[str]) -> float:
    """The share of the summaries' words that their sources have, as often; case is ignored."""
    copied = written = 0
    for source, summary in zip(sources, summaries, strict=True):
        words = Counter(_words(summary))
        copied += (words & Counter(_words(source))).total()
        written += words.total()
    return copied / max(written, 1)


def _words(line: str) -> list[str]:
    return re.findall(r"\w+", line.lower())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--examples", type=Path, help="summaries that are not of the test set")
    parser.add_argument("--output", type=Path, help="directory of the baselines")
    parser.add_argument("--judge", type=Path, nargs="+", default=[], metavar="FILE")
    options = parser.parse_args(arguments)
    sources = list(read_lines(options.source))
    if options.output:
        if not (options.reference and options.examples):
            parser.error("--output needs --reference and --examples")
        words = best_lead(sources, list(read_lines(options.reference)))
        constant = nearest_to_all(list(read_lines(options.examples)))
        options.output.mkdir(parents=True, exist_ok=True)
        _write(options.output / "lead.txt", leads(sources, words))
        _write(options.output / "constant.txt", [constant] * len(sources))
        # By one place: nobody's neighbour is itself, and no seed is needed.
        _write(options.output / "shuffled.txt", [*sources[1:], *sources[:1]])
        print(f"best lead: {words} words")
    for path in options.judge:
        lines = list(read_lines(path))
        distinct, copied = len(set(lines)) / len(lines), share_of_copies(sources, lines)
        print(f"{path.name}: {distinct:.1%} distinct, {copied:.1%} of the words copied")
    return 0


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
