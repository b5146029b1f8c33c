"""Lines with words that the teacher knows and the training text hardly has.

    python cover_words.py --teacher MODEL_DIRECTORY --have a.en b.en --from wordnet.en c.en \\
        --foreign a.pt b.pt > covering.en

The teacher's vocabulary holds the words that are frequent on the web: "booking", "spacious",
"Hilton". Printed are lines of `--from` with such words, those of the first file first, until every
word was seen `--least` times; words that are still rare are put in lists and short sentences. The
same arguments give the same lines.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

WORD = re.compile(r"[A-Za-z]{3,}")
MAX_WORDS = 30

#: For names, which the teacher's vocabulary has with a capital alone.
NAMES = (
    "Have you ever heard of {}?",
    "We read about {} in the news.",
    "{} is well known here.",
    "He works for {} now.",
    "Do you like {}?",
)
#: For things: words that the texts have after an article.
THINGS = (
    "Where is the {}?",
    "We need a new {}.",
    "The {} is not ready yet.",
    "How much does the {} cost?",
    "I have a question about the {}.",
)


def count_words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word.lower() for line in lines for word in WORD.findall(line))


def teacher_words(vocabulary: Path) -> list[str]:
    """Whole words of the teacher, the most frequent first."""
    pieces = SentencePieceProcessor(model_file=str(vocabulary))
    words = (pieces.id_to_piece(index) for index in range(pieces.get_piece_size()))
    return [word[1:] for word in words if word[0] == "▁" and WORD.fullmatch(word[1:])]


def covering(lines: Iterable[str], wanted: Counter[str]) -> Iterator[str]:
    """The lines that hold a wanted word; each line makes its words wanted once less."""
    for line in lines:
        found = {word for word in map(str.lower, WORD.findall(line)) if wanted[word] > 0}
        if found:
            wanted.subtract(found)
            yield line


def still_rare(words: list[str], wanted: Counter[str], more_than: float) -> list[str]:
    """Words that are wanted more often than that; of "Spa" and "spa" the latter."""
    small = {word for word in words if word.islower()}
    return [
        word
        for word in words
        if len(word) > 3
        and wanted[word.lower()] > more_than
        and (word.islower() or word.lower() not in small)
    ]


def frames(
    words: list[str], things: Counter[str], times: int, draw: random.Random
) -> Iterator[str]:
    """Each word in `times` lists and, if it is a name or a thing, in as many short sentences."""
    for _ in range(times):
        draw.shuffle(words)
        for start in range(0, len(words) - 2, 3):
            first, second, third = words[start : start + 3]
            yield f"{first[0].upper()}{first[1:]}, {second} and {third}"
    for word in words:
        sentences = NAMES if word[0].isupper() else THINGS if things[word] else ()
        for sentence in draw.sample(sentences, min(times, len(sentences))):
            yield sentence.format(word)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--teacher", type=Path, required=True, help="directory of vocab.enpt.spm")
    files: dict[str, Any] = {"type": Path, "nargs": "+", "required": True}
    parser.add_argument("--have", **files, help="English training text")
    parser.add_argument("--from", dest="pools", **files, help="lines to choose from")
    parser.add_argument("--foreign", **files, help="Portuguese text: words that are not English")
    parser.add_argument("--least", type=int, default=15, help="how often a word should be seen")
    arguments = parser.parse_args()
    draw = random.Random(1)

    have = [line for path in arguments.have for line in lines_of(path)]
    known = set(have)
    pool: list[str] = []
    for path in arguments.pools:
        lines = [line for line in lines_of(path) if line not in known]
        lines = [line for line in lines if len(line.split()) <= MAX_WORDS]
        pool += draw.sample(lines, len(lines))

    seen = count_words(have)
    english = seen + count_words(pool)
    foreign = count_words(line for path in arguments.foreign for line in lines_of(path))
    words = [
        word
        for word in dict.fromkeys(teacher_words(arguments.teacher / "vocab.enpt.spm"))
        if english[word.lower()] >= max(2, foreign[word.lower()] / 2)
    ]
    wanted = Counter({word.lower(): arguments.least - seen[word.lower()] for word in words})
    chosen = list(covering(pool, wanted))
    things = Counter(re.findall(r"\b(?:an?|the) ([a-z]{3,})\b", "\n".join([*have, *pool]).lower()))
    rare = still_rare(words, wanted, more_than=arguments.least / 2)
    for line in [*chosen, *frames(rare, things, 3, draw)]:
        print(line)


if __name__ == "__main__":
    main()
