"""Which target words a sentence may use: a file of a model directory, and how it is asked.

The output layer is a large part of a step, and a sentence needs few of its words. A shortlist names
for each source word the target words that it may become, and the words that are always allowed. The
words of a sentence follow from its own source alone, never from its neighbours in a batch.

    shortlist.bin    magic, format version, words of both vocabularies, words that are always
                     allowed; then little-endian arrays: where the words of each source word begin,
                     the words that are always allowed, the words of all source words

The arrays are mapped into memory. `bothends.shortlisting` learns one from text.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.order import BoolArray, IntArray
from bothends.storage.digests import check_file

SHORTLIST = "shortlist.bin"
FORMAT_VERSION = 1

_MAGIC = b"bothends words\n\0"
_HEADER = struct.Struct("<16sIIII")
#: Vocabularies of up to as many words have ids of two bytes.
_SMALL_IDS = 1 << 16


@dataclass(frozen=True)
class Shortlist:
    """The target words that each source word may become."""

    source_words: int
    target_words: int
    #: words that every sentence may use, in rising order
    always: NDArray[Any]
    #: `(source_words + 1,)`: where the words of each source word begin in `words`
    first: NDArray[Any]
    words: NDArray[Any]

    def allowed(self, source: Iterable[int]) -> IntArray:
        """The words that a sentence of these source words may use, in rising order."""
        may_use = self._always.copy()
        for token in set(source):
            may_use[self.words[self.first[token] : self.first[token + 1]]] = True
        return may_use.nonzero()[0]

    @cached_property
    def _always(self) -> BoolArray:
        may_use = np.zeros(self.target_words, bool)
        may_use[self.always] = True
        return may_use

    def write(self, directory: Path) -> None:
        """Write the file, whole or not at all."""
        kind = _id_type(self.target_words)
        header = _HEADER.pack(
            _MAGIC, FORMAT_VERSION, self.source_words, self.target_words, len(self.always)
        )
        arrays = (self.first.astype("<u4"), self.always.astype(kind), self.words.astype(kind))
        content = header + b"".join(array.tobytes() for array in arrays)
        write_atomically(Path(directory) / SHORTLIST, content)


def read_shortlist(directory: Path, source_words: int, target_words: int) -> Shortlist | None:
    """The shortlist of a model with so many words, or None if its directory has none."""
    path = Path(directory) / SHORTLIST
    if not path.is_file():
        return None
    check_file(path)
    try:
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise _damaged(path, "it is empty") from None
    shortlist = _parse(path, content)
    found = shortlist.source_words, shortlist.target_words
    if found != (source_words, target_words):
        raise BothendsError(
            f"{path}: for vocabularies of {found[0]} and {found[1]} words, but the model's have "
            f"{source_words} and {target_words}: it is the shortlist of another model"
        )
    return shortlist


def _parse(path: Path, content: mmap.mmap) -> Shortlist:
    """Every length and every id is checked here, so that nobody has to later."""
    if len(content) < _HEADER.size:
        raise _damaged(path, "its header is cut")
    magic, version, source_words, target_words, always_count = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise _damaged(path, "not a shortlist")
    if version != FORMAT_VERSION:
        raise BothendsError(
            f"{path}: format version {version}, but this version of bothends reads "
            f"{FORMAT_VERSION}: learn it again, or update bothends"
        )
    kind = _id_type(target_words)
    begin = _HEADER.size + 4 * (source_words + 1)
    rest = len(content) - begin
    if rest < always_count * kind.itemsize or rest % kind.itemsize:
        raise _damaged(path, "its length is wrong")
    first = np.frombuffer(content, "<u4", source_words + 1, _HEADER.size)
    ids = np.frombuffer(content, kind, -1, begin) if rest else np.zeros(0, kind)
    always, words = ids[:always_count], ids[always_count:]
    rising = np.all(first[:-1] <= first[1:]) and np.all(always[:-1] < always[1:])
    if not rising or first[0] != 0 or first[-1] != len(words):
        raise _damaged(path, "its lists do not fit each other")
    if len(ids) and int(ids.max()) >= target_words:
        raise _damaged(path, "a word is outside the vocabulary")
    return Shortlist(source_words, target_words, always, first, words)


def _id_type(target_words: int) -> np.dtype[Any]:
    return np.dtype("<u2" if target_words <= _SMALL_IDS else "<u4")


def _damaged(path: Path, why: str) -> BothendsError:
    return BothendsError(
        f"{path}: damaged ({why}); learn it again with `bothends shortlist`, or translate with "
        "--no-shortlist"
    )
