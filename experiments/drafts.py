"""What a draft saves: sentences are edited, and the old translation is the draft of the new one.

    python experiments/drafts.py --source test.en [--lines 1000] [--json FILE]

One word inside a sentence is replaced by a word of another sentence. The edited sentence is
translated greedily from nothing, and again with the translation of the unedited one as a draft.
Reported for each model: how many results are the same, decoder passes, and processor time.

The last line is another use of drafts: a fast order drafts what a 1x1 model then confirms, so that
the result is that of the 1x1 model. Its passes and time are those of both models.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bothends import Translator, __version__
from bothends.evaluation.bench.machine import this_machine
from bothends.files import write_output
from bothends.tables import Table, print_tables


@dataclass(frozen=True)
class Savings:
    """What drafts did for one model."""

    model: str
    edits: int
    identical: int
    steps: int
    steps_with_draft: int
    seconds: float
    seconds_with_draft: float


def edit(lines: Sequence[str], count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences of at least four words, and each with one inner word replaced."""
    random = np.random.default_rng(seed)
    words = [line.split() for line in lines if len(line.split()) >= 4]
    pairs = []
    for old in words[:count]:
        other = words[int(random.integers(len(words)))]
        place = int(random.integers(1, len(old) - 1))
        new = [*old[:place], other[int(random.integers(1, len(other) - 1))], *old[place + 1 :]]
        pairs.append((" ".join(old), " ".join(new)))
    return pairs


def measure(model: str, pairs: Sequence[tuple[str, str]]) -> Savings:
    translator = Translator.load(model, threads=1)
    old = translator.translate([before for before, _ in pairs], beam=1, split_sentences=False)
    begin = time.process_time()
    fresh = [translator.translate(after, beam=1, split_sentences=False) for _, after in pairs]
    middle = time.process_time()
    drafted = [
        translator.translate(after, draft=before.tokens, beam=1, split_sentences=False)
        for (_, after), before in zip(pairs, old, strict=True)
    ]
    end = time.process_time()
    same = sum(a.tokens == b.tokens for a, b in zip(fresh, drafted, strict=True))
    return Savings(
        model=model,
        edits=len(pairs),
        identical=same,
        steps=sum(each.steps for each in fresh),
        steps_with_draft=sum(each.steps for each in drafted),
        seconds=middle - begin,
        seconds_with_draft=end - middle,
    )


def measure_lossless(fast: str, exact: str, lines: Sequence[str]) -> Savings:
    """A model that drafts for another one."""
    drafter, writer = (Translator.load(model, threads=1) for model in (fast, exact))
    begin = time.process_time()
    alone = [writer.translate(line, beam=1, split_sentences=False) for line in lines]
    middle = time.process_time()
    drafts = [drafter.translate(line, beam=1, split_sentences=False) for line in lines]
    both = [
        writer.translate(line, draft=draft.text, beam=1, split_sentences=False)
        for line, draft in zip(lines, drafts, strict=True)
    ]
    end = time.process_time()
    return Savings(
        model=f"{exact}, drafts by {fast}",
        edits=len(lines),
        identical=sum(a.tokens == b.tokens for a, b in zip(alone, both, strict=True)),
        steps=sum(each.steps for each in alone),
        steps_with_draft=sum(each.steps for each in [*drafts, *both]),
        seconds=middle - begin,
        seconds_with_draft=end - middle,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", nargs="+", default=["en-pt-2x1", "en-pt-1x1"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lines = arguments.source.read_text("utf-8").splitlines()
    pairs = edit(lines, arguments.lines, arguments.seed)
    savings = [measure(model, pairs) for model in arguments.model]
    fast, exact = arguments.model[0], arguments.model[-1]
    savings.append(measure_lossless(fast, exact, [old for old, _ in pairs]))
    cells = tuple(
        (
            each.model,
            f"{each.edits:,}",
            f"{each.identical:,}",
            f"{each.steps / each.edits:.2f}",
            f"{each.steps_with_draft / each.edits:.2f}",
            f"{1000 * each.seconds / each.edits:.2f}",
            f"{1000 * each.seconds_with_draft / each.edits:.2f}",
        )
        for each in savings
    )
    headings = ("model", "edits", "identical", "passes", "with draft", "ms", "with draft")
    notes = [
        f"{arguments.source.name}, one inner word replaced, seed {arguments.seed}, greedy, "
        f"bothends {__version__}; per sentence; processor time, one thread, encoder included"
    ]
    print_tables([Table("Edited sentences", headings, cells)], notes)
    if arguments.json:
        record = {
            "notes": notes,
            "machine": asdict(this_machine()),
            "savings": [asdict(each) for each in savings],
        }
        write_output(arguments.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
