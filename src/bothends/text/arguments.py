"""Checks what callers pass: texts, iterables of them and nothing else, and names of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from numbers import Integral
from typing import Any

from bothends.errors import UsageError, nearest

#: What methods take, for errors.
ONE_DRAFT = "a draft is for one text: translate(text, draft=draft, beam=1)"
TEXTS = "a text (str) or an iterable of texts"
STREAM = "an iterable of texts (str), such as [text]"
SOURCES = "an iterable of sources (str), as in score([source], [target])"
TARGETS = "an iterable of targets, each a text (str) or tokens, as in score([source], [target])"


def check_text(what: str, text: Any, *, or_tokens: bool = False) -> None:
    """A TypeError unless an argument is a text; with `or_tokens`, it may be token ids."""
    if not isinstance(text, str) and not (or_tokens and _are_tokens(text)):
        expected = "a text (str) or tokens" if or_tokens else "a text (str)"
        raise TypeError(f"expected {expected}{what}, not {type(text).__name__}")


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """A TypeError unless all options that are given are known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise TypeError(f"unknown {what} option {name!r}; {nearest(name, known)}")


def check_choice(name: str, value: object, *, undecided: bool = False) -> None:
    """Complain about an option that is neither true nor false; with `undecided`, it may be None.

    Python takes any text for true, `"no"` and `"false"` too; and None is not false here.
    """
    if not isinstance(value, bool) and not (undecided and value is None):
        choices = "True, False or None" if undecided else "True or False"
        raise UsageError(f"{name} must be {choices}, not {value!r}")


def check_pair(number: int, pair: Any) -> tuple[Any, Any]:
    """A source and its target, or a TypeError: a text of two characters is no pair of texts."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"expected pairs of a source and a target, but number {number} is {pair!r:.40}"
        )
    source, target = pair
    check_text(f" as source {number}", source)
    check_text(f" as target {number}", target, or_tokens=True)
    return source, target


def check_lines(
    expected: str, lines: Iterable[Any], *, pauses: bool = False, or_tokens: bool = False
) -> Iterator[Any]:
    """The lines of an iterable, or a TypeError that names what was expected.

    With `pauses`, `None` may stand between the lines; with `or_tokens`, a line may be token ids.
    """
    if isinstance(lines, str) or not _has_order(lines):
        raise TypeError(f"expected {expected}, not {type(lines).__name__}")
    return _checked(expected, lines, pauses, or_tokens)


def _checked(expected: str, lines: Iterable[Any], pauses: bool, or_tokens: bool) -> Iterator[Any]:
    for number, line in enumerate(lines, start=1):
        fits = isinstance(line, str) or (pauses and line is None)
        if not fits and not (or_tokens and _are_tokens(line)):
            kind = type(line).__name__
            raise TypeError(f"expected {expected}, but number {number} of them is {kind}")
        yield line


def _are_tokens(value: Any) -> bool:
    return _has_order(value) and all(isinstance(each, Integral) for each in value)


def _has_order(value: Any) -> bool:
    """Whether it is an iterable with an order that results could be in; a mapping has none."""
    without_order = (bytes, bytearray, Mapping, Set)
    return isinstance(value, Iterable) and not isinstance(value, without_order)
