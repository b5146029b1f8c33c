"""Checks the texts that callers pass: a string, or an iterable of strings and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

#: What methods take, for errors.
ONE_DRAFT = "a draft is for one text: translate(text, draft=draft, beam=1)"
TEXTS = "a text (str) or an iterable of texts"
STREAM = "an iterable of texts (str), such as [text]"


def check_lines(expected: str, lines: Iterable[Any], *, pauses: bool = False) -> Iterator[Any]:
    """The lines of an iterable, or a TypeError that names what was expected.

    With `pauses`, `None` may stand between the lines.
    """
    # A mapping or a set has no order that results could be in.
    if isinstance(lines, str | bytes | bytearray | Mapping | Set) or not isinstance(
        lines, Iterable
    ):
        raise TypeError(f"expected {expected}, not {type(lines).__name__}")
    return _checked(expected, lines, pauses)


def _checked(expected: str, lines: Iterable[Any], pauses: bool) -> Iterator[Any]:
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str) and not (pauses and line is None):
            kind = type(line).__name__
            raise TypeError(f"expected {expected}, but number {number} of them is {kind}")
        yield line
