"""Add to a model's shortlist the words that the teacher's own shortlist has for each source word.

    python widen_shortlist.py --teacher MODEL_DIRECTORY MODEL [--up-to WORDS]

The teacher's comes from far more text than the recipe has. Our pieces are pieces of its vocabulary,
so its lists need no translation: pieces that only one of the two has are left out. `--up-to` keeps
the file small: a list is filled up to so many words, the most frequent first; longer ones stay.

    lex.*.bin    six 64-bit numbers (magic, checksum, frequent words, best words, length of both
                 arrays); then where the words of each source word begin, 64 bits each, and the
                 words, 32 bits each, little-endian
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
import sentencepiece

from bothends.model.directory import read_description, record_model
from bothends.model.shortlist import SHORTLIST, Shortlist, read_shortlist
from bothends.text.vocabulary import VOCABULARY

MAGIC = 0xF11A48D5013417F5
HEADER = 6
SHORT = 3  # characters of a piece, with the mark of a space


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True, metavar="DIR")
    parser.add_argument("--up-to", type=int, default=10_000, metavar="WORDS")
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    (theirs,) = options.teacher.glob("vocab.*.spm")
    (lists,) = options.teacher.glob("lex.*.bin")
    description = read_description(options.model).model
    own = read_shortlist(options.model, description.vocabulary_size, description.target_size)
    if own is None:
        raise SystemExit(f"{options.model}: no shortlist; `bothends shortlist` learns one")
    numbers = {piece: number for number, piece in enumerate(pieces(options.model / VOCABULARY))}
    their_pieces = pieces(theirs)
    ours = [numbers.get(piece) for piece in their_pieces]
    always = set(own.always.tolist())
    words = [set(own.words[begin:end].tolist()) for begin, end in pairwise(own.first)]
    before = sum(map(len, words))
    for piece, source, targets in zip(their_pieces, ours, read_lists(lists), strict=True):
        # Short pieces, parts of words and words that every text has, keep ours: a small file.
        if source is not None and len(piece) > SHORT:
            found = [ours[target] for target in sorted(targets)]  # the most frequent words first
            new = [
                word for word in found if word is not None and word not in words[source] | always
            ]
            words[source] |= set(new[: max(0, options.up_to - len(words[source]))])
    first = np.cumsum([0, *map(len, words)])
    ids = np.array([word for each in words for word in sorted(each)], np.int64)
    Shortlist(own.source_words, own.target_words, own.always, first, ids).write(options.model)
    record_model(options.model, [SHORTLIST])
    print(f"{options.model}: {len(ids):,} words of source words, {before:,} before")


if __name__ == "__main__":
    main()
