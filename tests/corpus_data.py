"""Small generated corpora: sentences of made-up words, and files of them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable
from pathlib import Path

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiouäö"]


def make_sentences(count: int, seed: int = 0, words: int = 200) -> list[str]:
    """Sentences of 1 to 12 words out of a lexicon of `words`; some with digits and punctuation."""
    rng = random.Random(seed)
    lexicon = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(words)]
    sentences = []
    for _ in range(count):
        sentence = " ".join(rng.choices(lexicon, k=rng.randint(1, 12)))
        sentences.append(sentence + rng.choice(["", ".", "?", f", {rng.randint(0, 99)}."]))
    return sentences


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write lines, compressed if the name ends in .gz."""
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def content(directory: Path) -> dict[str, bytes]:
    """Everything in a directory, by name, hidden files included."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
