"""A model's shortlist from two files, and what it costs: measured on pairs that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.evaluation.parallel_lines import read_aligned, read_lines
from bothends.model.bundled import find_model
from bothends.model.directory import record_model
from bothends.model.shortlist import SHORTLIST
from bothends.search.options import SearchOptions
from bothends.shortlisting.learn import (
    Coverage,
    ShortlistOptions,
    evenly,
    learn_shortlist,
    measure_coverage,
)
from bothends.text.lines import Invalid
from bothends.translator import Translator


@dataclass(frozen=True)
class ShortlistReport:
    """What was written, and how much of the held-out pairs it allows."""

    path: Path
    bytes: int
    target_words: int
    #: words that every sentence may use
    always: int
    #: of the translations in the target file
    reference: Coverage
    #: of what the model writes when it may use all words; None if it cannot be run
    output: Coverage | None
    #: translations that are the same with the shortlist
    same: int | None

    def as_json(self) -> dict[str, Any]:
        return {"command": "shortlist", **asdict(self), "path": str(self.path)}

    def lines(self) -> list[str]:
        words = self.reference.allowed
        found = [
            f"{self.path}: {self.bytes / 1e6:.2f} MB; on average {words:,.0f} of "
            f"{self.target_words:,} words ({words / self.target_words:.1%}) for a sentence, "
            f"{self.always:,} of them always",
            f"covers of {self.reference.lines:,} held-out references: {self.reference}",
        ]
        if self.output is not None:
            found.append(f"covers of the model's own translations: {self.output}")
            found.append(f"the same translation with it: {self.same:,} of {self.output.lines:,}")
        return found


def make_shortlist(
    model: Path,
    source: Path,
    target: Path,
    options: ShortlistOptions,
    held_out: int = 500,
    beam: int = SearchOptions.beam,
    invalid: Invalid = "error",
    tell: Callable[[str], None] = lambda message: None,
) -> ShortlistReport:
    """Learn the shortlist of a model directory, write it there, and measure it.

    `held_out` pairs, from all over the files, are not learned from.
    """
    directory = find_model(model)
    lines = read_lines(source, invalid)
    translations = read_aligned(target, source, len(lines), invalid)
    with Translator.load(directory, shortlist=False) as translator:
        vocabularies = translator.vocabularies
        tell(f"encoding {len(lines):,} pairs")
        sources = vocabularies.source.encode(lines, translator.threads)
        targets = vocabularies.target.encode(translations, translator.threads)
        numbers = [n for n in range(len(lines)) if sources[n] and targets[n]]
        if len(numbers) <= held_out:
            raise BothendsError(
                f"{source}: {len(numbers):,} pairs with text on both sides are not more than the "
                f"{held_out:,} that are held out: give more text, or hold out fewer"
            )
        kept = evenly(numbers, held_out)
        # A line that is held out is not learned from where it stands again, either.
        unseen = {lines[number] for number in kept}
        learned = [number for number in numbers if lines[number] not in unseen]
        shortlist = learn_shortlist(
            vocabularies,
            [sources[number] for number in learned],
            [targets[number] for number in learned],
            options,
            tell,
        )
        shortlist.write(directory)
        record_model(directory, [SHORTLIST])
        held_sources = [sources[number] for number in kept]
        reference = measure_coverage(shortlist, held_sources, [targets[n] for n in kept])
        output, same = None, None
        if kept and translator.engine_name == "native":
            tell(f"translating {len(kept):,} held-out lines, with all words and with these")
            texts = [lines[number] for number in kept]
            free = translator.translate(texts, beam=beam, split_sentences=False)
            output = measure_coverage(
                shortlist,
                [each.source_tokens for each in free],
                [each.tokens for each in free],
            )
            with Translator.load(directory) as other:
                bound = other.translate(texts, beam=beam, split_sentences=False)
            same = sum(one.text == two.text for one, two in zip(free, bound, strict=True))
    path = directory / SHORTLIST
    size, words = path.stat().st_size, vocabularies.target.size
    return ShortlistReport(path, size, words, len(shortlist.always), reference, output, same)
