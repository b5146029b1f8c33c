"""Ctrl-C and SIGTERM end a run after the update at hand, not in the middle of it."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any


class Interruption:
    """While this context is open, the first signal is noted; a second one acts as ever."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
