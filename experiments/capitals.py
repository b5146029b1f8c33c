"""What a model makes of text in capitals, alone and when it is asked for small letters.

    python experiments/capitals.py --source test.en --reference test.pt [--model NAME] [--lines 200]

prints chrF against the reference in capitals: of the translation of the text as it was, in
capitals; of what the model alone makes of the text in capitals; and of what `bothends translate`
makes of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import sacrebleu

from bothends.model.bundled import DEFAULT_MODEL
from bothends.text.capitals import in_small_letters, with_capitals
from bothends.translator import Translator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--lines", type=int, default=200)
    options = parser.parse_args()
    source, reference = (
        path.read_text(encoding="utf-8").split("\n")[: options.lines]
        for path in (options.source, options.reference)
    )
    with Translator.load(options.model) as translator:
        languages = translator.description.source_language, translator.description.target_language

        def translate(lines: list[str]) -> list[str]:
            return [each.text for each in translator.translate(lines, split_sentences=False)]

        capitals = [line.upper() for line in source]
        small = [in_small_letters(line, languages[0]) for line in capitals]
        for name, translations in (
            ("as it was", translate(source)),
            ("in capitals, the model alone", translate(capitals)),
            ("in capitals, asked in small letters", translate(small)),
        ):
            found = [with_capitals(line, languages[1]) for line in translations]
            score = sacrebleu.corpus_chrf(found, [[line.upper() for line in reference]])
            print(f"{name}: {score.score:.1f} chrF")


if __name__ == "__main__":
    main()
