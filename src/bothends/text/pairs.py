"""Aligned text files: read them without ever losing a line, check them, filter pairs.

A line ends at a newline and nowhere else: the other characters that some tools break lines at (a
carriage return, U+2028, a form feed) are text, or one side would get a line more than the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from bothends.errors import BothendsError, UsageError
from bothends.storage.places import Place
from bothends.storage.schemas import Strict
from bothends.text.lines import MAX_LINE, UNREADABLE, open_file, too_long, unreadable

#: Lines that are read, encoded and written together.
BATCH = 8192
#: Bytes of a read, fewer than a line may have.
_PIECE = 1 << 16


def read_lines(path: Place) -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or gzip-compressed, without their ends."""
    for batch in read_batches(path):
        yield from batch


def read_batches(path: Place, size: int = BATCH) -> Iterator[list[str]]:
    """The lines of a file in lists of `size`: several times faster than one by one."""
    try:
        with open_file(path) as file:
            number = 1
            for raw in _raw_batches(file, path, size):
                yield _decode(raw, path, number)
                number += len(raw)
    except UNREADABLE as error:
        raise unreadable(str(path), error) from None


def _raw_batches(file: BufferedReader, path: Place, size: int) -> Iterator[list[bytes]]:
    """Lists of `size` lines without their ends, from a file that is read in pieces.

    Iterating over the file would be as fast, but hold a line without an end in memory.
    """
    lines: list[bytes] = []
    rest, number = b"", 1  # what the line of this number has so far
    while piece := file.read(_PIECE):
        *whole, last = (rest + piece).split(b"\n")
        if len(whole[0] if whole else last) > MAX_LINE:
            raise too_long(f"{path}, line {number}")
        rest, number = last, number + len(whole)
        lines += whole
        while len(lines) >= size:
            yield lines[:size]
            del lines[:size]
    if rest:
        lines.append(rest)
    if lines:
        yield lines


def read_pairs(source: Path, target: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Batches of two aligned files; an error at the end if one has more lines than the other."""
    lines = 0
    batches = zip_longest(read_batches(source), read_batches(target), fillvalue=cast(list[str], []))
    for sources, targets in batches:
        if len(sources) != len(targets):
            source_lines, target_lines = lines + len(sources), lines + len(targets)
            for more_sources, more_targets in batches:
                source_lines += len(more_sources)
                target_lines += len(more_targets)
            raise BothendsError(
                f"{source} has {source_lines} lines but {target} has {target_lines}: line n of one "
                "must belong to line n of the other"
            )
        lines += len(sources)
        yield sources, targets


def _decode(raw: list[bytes], path: Place, number: int) -> list[str]:
    """Lines as text, all at once; where that fails, the line that is to blame."""
    try:
        text = b"\n".join(raw).decode("utf-8")
    except UnicodeDecodeError:
        for number, line in enumerate(raw, number):  # noqa: B020
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BothendsError(
                    f"{path}: line {number} is not UTF-8: byte {line[error.start]:#04x} at "
                    f"position {error.start + 1}; convert the file to UTF-8"
                ) from None
        raise
    if "\0" in text:
        number += next(index for index, line in enumerate(raw) if b"\0" in line)
        raise BothendsError(f"{path}: line {number} has a NUL byte: not a UTF-8 text file")
    if number == 1:
        text = text.removeprefix("\ufeff")  # a byte order mark is no text
    lines = text.split("\n")
    if "\r" in text:  # files from Windows
        lines = [line.removesuffix("\r") for line in lines]
    return lines


Reason = Literal["empty", "too_long", "ratio", "duplicate"]


class FilterReport(Strict):
    """How many pairs of a split were read, kept and dropped."""

    read: int
    kept: int
    #: a count for each filter that was on; a pair counts once, under the first that drops it
    dropped: dict[Reason, int]


@dataclass(frozen=True)
class Filters:
    """Which pairs are dropped. Pairs with an empty side always are. Zero means no limit."""

    #: tokens of either side
    max_length: int = 256
    #: tokens of the longer side over tokens of the shorter
    max_ratio: float = 9.0
    #: a pair of lines that was there before
    drop_duplicates: bool = False

    def __post_init__(self) -> None:
        if self.max_length < 0:
            raise UsageError(
                f"maximum length {self.max_length}: expected a number of tokens, or 0 for no limit"
            )
        if self.max_ratio != 0 and not self.max_ratio >= 1:
            raise UsageError(
                f"maximum ratio {self.max_ratio:g}: expected at least 1, or 0 for no limit"
            )

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why pairs may be left out, in the order in which they are checked."""
        active: dict[Reason, bool] = {
            "empty": True,
            "too_long": self.max_length > 0,
            "ratio": self.max_ratio > 0,
            "duplicate": self.drop_duplicates,
        }
        return tuple(reason for reason, on in active.items() if on)

    def refuse(self, source_length: int, target_length: int) -> Reason | None:
        """Why a pair with so many tokens is left out, or None; duplicates are not seen here."""
        longer, shorter = max(source_length, target_length), min(source_length, target_length)
        if shorter == 0:
            return "empty"
        if self.max_length and longer > self.max_length:
            return "too_long"
        if self.max_ratio and longer > self.max_ratio * shorter:
            return "ratio"
        return None


class SeenPairs:
    """Which pairs were there before, at eight bytes a pair.

    Pairs are compared by a 64-bit hash: of ten million different pairs, the chance that any two are
    taken for the same is three in a million. The hashes lie in sorted runs, each at least twice as
    long as the next, so that a look-up costs a few binary searches.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def first_time(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.bool_]:
        """For each pair of a batch, whether it is new; remembers the batch."""
        hashes = np.fromiter(map(_hash, sources, targets), dtype=np.uint64)
        new = np.zeros(len(hashes), dtype=np.bool_)
        new[np.unique(hashes, return_index=True)[1]] = True
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            new &= run[places] != hashes
        if new.any():
            self._runs.append(np.sort(hashes[new]))
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) > len(self._runs[-2]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort()
            self._runs.append(merged)
        return new


def _hash(source: str, target: str) -> int:
    # A newline is in neither line, so the two cannot run into each other.
    digest = hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
