"""Add to a model's shortlist the words that the teacher's own shortlist has for each source word.

    python widen_shortlist.py --teacher MODEL_DIRECTORY MODEL
    python widen_shortlist.py --teacher MODEL_DIRECTORY MODEL --keep 150000 --text all.en all.pt

The teacher's comes from far more text than the recipe has. Our pieces are pieces of its vocabulary,
so its lists need no translation: pieces that only one of the two has are left out. `--keep` makes
the file small: of all pairs of a source word and a target word it keeps those that are likely to be
needed most often, counted in the text that the model has learned from.

    lex.*.bin    six 64-bit numbers (magic, checksum, frequent words, best words, length of both
                 arrays); then where the words of each source word begin, 64 bits each, and the
                 words, 32 bits each, little-endian
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import sentencepiece

from bothends.model.directory import read_description, record_model
from bothends.model.shortlist import SHORTLIST, Shortlist, read_shortlist
from bothends.text.vocabulary import VOCABULARY

MAGIC = 0xF11A48D5013417F5
HEADER = 6
#: How often a source word is expected besides what the text says, and each of its target words: the
#: text is a small part of what people translate.
SOURCE_PRIOR = 5.0
TARGET_PRIOR = 0.5


def read_lists(path: Path) -> list[list[int]]:
    """The target words of each source word in the teacher's file."""
    content = path.read_bytes()
    header = np.frombuffer(content, "<u8", HEADER)
    if header[0] != MAGIC:
        raise SystemExit(f"{path}: not a shortlist of Marian's")
    offsets, words = map(int, header[4:])
    first = np.frombuffer(content, "<u8", offsets, 8 * HEADER).astype(np.int64)
    ids = np.frombuffer(content, "<u4", words, 8 * (HEADER + offsets))
    return [ids[begin:end].tolist() for begin, end in pairwise(first)]


def pieces(path: Path) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def likely_words(
    words: list[set[int]], most: int, model: Path, source: Path, target: Path
) -> list[set[int]]:
    """The `most` pairs of a source and a target word that are expected most often."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    seen = np.zeros(len(words))
    together: Counter[tuple[int, int]] = Counter()
    with open(source, encoding="utf-8") as sources, open(target, encoding="utf-8") as targets:
        for line, translation in zip(sources, targets, strict=True):
            there = set(processor.encode(translation))
            for word in set(processor.encode(line)):
                seen[word] += 1
                together.update((word, other) for other in words[word] & there)
    pairs = [(word, other) for word, others in enumerate(words) for other in sorted(others)]
    lengths = np.array([len(others) for others in words])
    expected = [
        (seen[word] + SOURCE_PRIOR)
        * (together[word, other] + TARGET_PRIOR)
        / (seen[word] + TARGET_PRIOR * lengths[word])
        for word, other in pairs
    ]
    kept: list[set[int]] = [set() for _ in words]
    for place in np.argsort(expected, kind="stable")[::-1][:most]:
        word, other = pairs[place]
        kept[word].add(other)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--teacher", type=Path, required=True, metavar="DIR")
    parser.add_argument("--keep", type=int, metavar="PAIRS")
    parser.add_argument("--text", type=Path, nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    if (options.keep is None) != (options.text is None):
        parser.error("--keep and --text go together")
    (theirs,) = options.teacher.glob("vocab.*.spm")
    (lists,) = options.teacher.glob("lex.*.bin")
    description = read_description(options.model).model
    own = read_shortlist(options.model, description.vocabulary_size, description.target_size)
    if own is None:
        raise SystemExit(f"{options.model}: no shortlist; `bothends shortlist` learns one")
    vocabulary = options.model / VOCABULARY
    numbers = {piece: number for number, piece in enumerate(pieces(vocabulary))}
    their_pieces = pieces(theirs)
    ours = [numbers.get(piece) for piece in their_pieces]
    always = set(own.always.tolist())
    words = [set(own.words[begin:end].tolist()) for begin, end in pairwise(own.first)]
    before = sum(map(len, words))
    for source, targets in zip(ours, read_lists(lists), strict=True):
        if source is not None:
            found = {ours[target] for target in targets}
            words[source] |= {word for word in found if word is not None} - always
    union = sum(map(len, words))
    if options.keep is not None:
        words = likely_words(words, options.keep, vocabulary, *options.text)
    first = np.cumsum([0, *map(len, words)])
    ids = np.array([word for each in words for word in sorted(each)], np.int64)
    Shortlist(own.source_words, own.target_words, own.always, first, ids).write(options.model)
    record_model(options.model, [SHORTLIST])
    print(
        f"{options.model}: {before:,} words of source words, {union:,} with the teacher's, "
        f"{len(ids):,} kept"
    )


if __name__ == "__main__":
    main()
