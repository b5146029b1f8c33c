"""Ends a run at one of its writes, as `kill -9` would, but at a place that a test chooses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest


class Killed(BaseException):
    """Ends a run at once: nothing in the code handles it."""


class WriteCounter:
    """Calls of the guarded functions since the test set `calls` to 0; the `fatal` one kills."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.calls = 0

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        def guarded(*arguments: Any) -> None:
            self.calls += 1
            if self.calls == self.fatal:
                raise Killed
            function(*arguments)

        return guarded


@contextmanager
def killed_at_write(
    fatal: int, functions: Sequence[str] = ("fsync", "replace")
) -> Iterator[WriteCounter]:
    """Inside, call number `fatal` of these functions of `os` raises `Killed` instead."""
    counter = WriteCounter(fatal)
    with pytest.MonkeyPatch.context() as patch:
        for name in functions:
            patch.setattr(os, name, counter.guard(getattr(os, name)))
        yield counter
