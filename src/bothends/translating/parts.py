"""How many lines are done, told by those who translate their parts: cells, sentences."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class PartCounter:
    """Counts wholes and their parts as they are read, and tells of parts done as of wholes.

    Reading and translating happen on different threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._wholes = self._parts = 0  # read
        self._done = self._told = 0  # parts, wholes

    def read(self, parts: int) -> None:
        """One more whole was read, of so many parts."""
        with self._lock:
            self._wholes += 1
            self._parts += parts

    def in_wholes(self, advance: Callable[[int], None]) -> Callable[[int], None]:
        """`advance`, which counts wholes, for parts: the numbers of both agree at the end."""

        def advance_by_parts(parts: int) -> None:
            with self._lock:
                self._done += parts
                wholes = max(0, self._done * self._wholes // self._parts - self._told)
                self._told += wholes
            advance(wholes)

        return advance_by_parts
