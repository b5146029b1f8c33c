"""What a model makes of capitals, headlines and typographic marks, alone and asked plainly.

    python experiments/writing.py capitals|headlines|marks --source test.en --reference test.pt
        [--model NAME] [--beam 4] [--lines 200]

rewrites the first lines that the writing changes, and prints chrF: of the lines as they were; of
what the model alone makes of the rewritten ones; and of what `bothends translate` makes of them.
For marks also how many translations have as many quotes. Capitals count only among marks.
"""

# The marks look like others to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import argparse
import re
from pathlib import Path

import sacrebleu

from bothends.model.bundled import DEFAULT_MODEL
from bothends.text.plain_writing import PlainWriting
from bothends.text.typography import plain_marks
from bothends.translator import Translator

#: Words that headlines write in small letters.
SMALL = frozenset("a an and as at but by for from in is it of on or the to with".split())


def with_marks(line: str) -> str:
    """A line as a word processor writes it."""
    line = re.sub(r'(^|[\s(\[])"', r"\1“", line).replace('"', "”")
    return re.sub(r"(^|[\s(\[“])'", r"\1‘", line).replace("'", "’")


def as_headline(line: str) -> str:
    """A line with capitals as in an English headline."""
    words = line.rstrip(".").split(" ")
    return " ".join(
        word if number and word in SMALL else word[:1].upper() + word[1:]
        for number, word in enumerate(words)
    )


#: How a line is rewritten.
KINDS = {"capitals": str.upper, "headlines": as_headline, "marks": with_marks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--lines", type=int, default=200)
    options = parser.parse_args()
    rewrite = KINDS[options.kind]
    source, reference = (
        [plain_marks(line, None) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        for path in (options.source, options.reference)
    )
    pairs = [pair for pair in zip(source, reference, strict=True) if rewrite(pair[0]) != pair[0]]
    source, reference = (list(side) for side in zip(*pairs[: options.lines], strict=True))
    with Translator.load(options.model) as translator:
        description = translator.description
        writing = PlainWriting(description.source_language, description.target_language)

        def translate(lines: list[str]) -> list[str]:
            found = translator.translate(lines, beam=options.beam, split_sentences=False)
            return [each.text for each in found]

        rewritten = [rewrite(line) for line in source]
        asked = translate([writing.of(line) for line in rewritten])
        for name, translations in (
            ("as they were", translate(source)),
            ("rewritten, the model alone", translate(rewritten)),
            ("rewritten, asked plainly", list(map(writing.restore, rewritten, asked))),
        ):
            # Marks of either kind count as the same ones.
            found = [plain_marks(line, None) for line in translations]
            expected = reference
            if options.kind != "marks":
                found, expected = ([each.upper() for each in lines] for lines in (found, expected))
            score = sacrebleu.corpus_chrf(found, [expected]).score
            same = sum(
                ours.count('"') == line.count('"') for ours, line in zip(found, source, strict=True)
            )
            quotes = f", quotes of {same} lines" if options.kind == "marks" else ""
            print(f"{len(source)} lines {name}: {score:.1f} chrF{quotes}", flush=True)


if __name__ == "__main__":
    main()
