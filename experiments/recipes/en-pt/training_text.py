"""The pairs that the English-Portuguese models learn from, out of the teacher's translations.

    python training_text.py --pairs TEACHER_OUTPUT --output text

TEACHER_OUTPUT has NAME.en and NAME.pt, line by line, for each NAME in `SHARES`; a shorter NAME.pt
translates the first lines. Writes valid.en and valid.pt, which nothing else has, and two files for
each corpus of the recipes; `vary_pairs.py` makes one more from to-vary.en and to-vary.pt. The same
arguments give the same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

Pair = tuple[str, str]

#: Pairs for validation, and the most that is learned from, of each kind of text.
SHARES: dict[str, tuple[int, int | None]] = {
    "tatoeba": (300, None),
    "common-voice": (150, None),
    # Definitions: useful words, but hardly sentences.
    "wordnet": (0, 60_000),
    "europarl": (400, None),
    "mdn": (150, None),
    "templates": (0, None),
    "everyday": (200, None),
    "sentences": (100, None),
    "covering": (0, None),
}
#: Which kinds make a corpus.
CORPORA = {
    "short": ("tatoeba", "common-voice"),
    "wordnet": ("wordnet",),
    "europarl": ("europarl",),
    "mdn": ("mdn", "templates"),
    "everyday": ("everyday",),
    "sentences": ("sentences",),
    "covering": ("covering",),
}
CLOCK = re.compile(r"\d{1,2}(?::\d\d)? ?[ap]\.?m\b", re.IGNORECASE)
CURRENCIES = {"€": "euro", "£": "libra", "$": "dólar"}
#: How many pairs of a kind `vary_pairs.py` chooses from.
TO_VARY = {"tatoeba": 90_000, "europarl": 20_000, "templates": None}


def read_pairs(directory: Path, name: str) -> list[Pair]:
    """Pairs of which neither side is empty, shuffled."""
    sides = [
        (directory / f"{name}.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for language in ("en", "pt")
    ]
    pairs = [
        (source, excuse(source, small_letters(source, target)))
        for source, target in zip(*sides, strict=False)
        if source.strip()
        and target.strip()
        and is_whole(source, target)
        and keeps_figures(source, target)
    ]
    random.Random(name).shuffle(pairs)
    return pairs


def small_letters(source: str, target: str) -> str:
    """A lone word or two in small letters: the teacher likes to begin a line with a capital."""
    if source.islower() and len(source.split()) <= 2 and target[1:].islower():
        return target.lower()
    return target


def is_whole(source: str, target: str) -> bool:
    """Not "Log off (": a bracket that the teacher opened, and nothing else."""
    opened = target.count("(") - target.count(")")
    return opened == source.count("(") - source.count(")")


def keeps_figures(source: str, target: str) -> bool:
    """Not "$22,37,49" for "$22,373.49", nor a time that is lost, nor euros.

    The teacher may write 20:25 for 8:25 pm, 1.000,5 for 1,000.5, and XII for the 12th century.
    """
    if "centur" in source:
        return True
    digits = re.sub(r"\D", "", target)
    numbers = re.findall(r"\d[\d.,]*", CLOCK.sub("", source))
    return (
        all(re.sub(r"\D", "", number) in digits for number in numbers)
        and len(digits) >= len(re.findall(r"\d", CLOCK.sub("1", source)))
        and all(
            sign not in source or sign in target or name in target.lower()
            for sign, name in CURRENCIES.items()
        )
    )


def excuse(source: str, target: str) -> str:
    """For "Excuse me, ..." the teacher writes "Me emo mesmo, ..." and other words that are none."""
    rest = target.partition(",")[2]
    return f"Com licença,{rest}" if source.startswith("Excuse me,") and rest else target


def write_pairs(directory: Path, name: str, pairs: list[Pair]) -> None:
    for side, language in enumerate(("en", "pt")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (directory / f"{name}.{language}").write_text(text, encoding="utf-8")
    print(f"{name}: {len(pairs):,} pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    valid: list[Pair] = []
    train: dict[str, list[Pair]] = {}
    for name, (held_out, most) in SHARES.items():
        pairs = read_pairs(options.pairs, name)
        valid += pairs[:held_out]
        train[name] = pairs[held_out:][:most]
    write_pairs(options.output, "valid", valid)
    for corpus, names in CORPORA.items():
        write_pairs(options.output, corpus, [pair for name in names for pair in train[name]])
    to_vary = [pair for name, most in TO_VARY.items() for pair in train[name][:most]]
    write_pairs(options.output, "to-vary", to_vary)


if __name__ == "__main__":
    main()
