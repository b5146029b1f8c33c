"""Lines whose tabs come back: each cell of a table is translated alone.

To a model a tab is a space, and the cells of a row would be one sentence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from bothends.translating.line_job import join_sentences
from bothends.translating.parts import PartCounter
from bothends.translating.translation import Translation, TranslationOptions


class TableCells:
    """Cuts lines at their tabs on the way to a model, and puts their translations together."""

    def __init__(self, options: TranslationOptions) -> None:
        self._options = options
        #: how many cells the lines have that are under way
        self._under_way: deque[int] = deque()
        self._counter = PartCounter()

    def cut(self, lines: Iterable[str | None]) -> Iterator[str | None]:
        """The cells of the lines; None, a pause, is passed on."""
        for line in lines:
            if line is None:
                yield None
                continue
            cells = line.split("\t")
            self._under_way.append(len(cells))
            self._counter.read(len(cells))
            yield from cells

    def joined(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """The translations of the lines, from those of their cells."""
        translated = iter(translations)
        for first in translated:
            count = self._under_way.popleft()
            yield first if count == 1 else self._join([first, *islice(translated, count - 1)])

    def in_lines(self, advance: Callable[[int], None]) -> Callable[[int], None]:
        """`advance`, which counts lines, for cells: they are all lines at the end."""
        return self._counter.in_wholes(advance)

    def _join(self, cells: list[Translation]) -> Translation:
        joined = join_sentences(cells, self._options, None)
        return replace(joined, text="\t".join(cell.text for cell in cells))
