"""How far a command is, on stderr: one live line on a terminal, a plain one at times elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

#: Seconds between reports on a terminal and elsewhere.
_LIVE, _PLAIN = 0.2, 10.0


class Progress:
    """Counts lines. Says nothing unless it is `wanted`."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._live = wanted and sys.stderr.isatty()
        self._count = 0

    def __enter__(self) -> Progress:
        self._begin = time.monotonic()
        self._due = self._begin + (_LIVE if self._live else _PLAIN)
        return self

    def advance(self) -> None:
        """One more line is done."""
        self._count += 1
        if self._wanted and (now := time.monotonic()) >= self._due:
            self._report(now, "\r" if self._live else "\n")
            self._due = now + (_LIVE if self._live else _PLAIN)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._wanted:
            self._report(time.monotonic(), "\n")

    def _report(self, now: float, end: str) -> None:
        seconds = max(now - self._begin, 1e-9)
        print(
            f"{self._count:,} lines, {self._count / seconds:,.1f} lines/s, {seconds:,.0f} s",
            end=end,
            file=sys.stderr,
            flush=True,
        )
