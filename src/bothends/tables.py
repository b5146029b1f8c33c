"""Tables for the terminal (drawn) and for files and pipes (aligned text)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill


@dataclass(frozen=True)
class Table:
    """Cells of text under headings; the first column is a name, the others are figures."""

    title: str
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


#: Characters of a line of plain text.
WIDTH = 100


def plain(table: Table, width: int = WIDTH) -> str:
    """A table as aligned text, for files and pipes.

    Columns that do not fit into `width` go on below, beside the first column once more.
    """
    widths = [max(map(len, column)) for column in zip(table.headings, *table.lines, strict=True)]
    groups: list[list[int]] = [[]]
    used = widths[0]
    for number, needed in enumerate(widths[1:], start=1):
        if groups[-1] and used + 2 + needed > width:
            groups.append([])
            used = widths[0]
        groups[-1].append(number)
        used += 2 + needed
    parts = []
    for group in groups:
        columns = [0, *group]
        headings = tuple(table.headings[number] for number in columns)
        lines = tuple(tuple(line[number] for number in columns) for line in table.lines)
        parts.append(_aligned(headings, lines))
    return "\n".join([table.title, "\n\n".join(parts)])


def _aligned(headings: tuple[str, ...], lines: tuple[tuple[str, ...], ...]) -> str:
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *figures = (
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *figures]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(headings), rule, *map(line, lines)])


def print_tables(found: Sequence[Table], notes: Sequence[str]) -> None:
    """Tables, and lines of text below them, on stdout: drawn on a terminal, plain elsewhere."""
    import sys

    if not sys.stdout.isatty():
        wrapped = [fill(note, WIDTH, break_on_hyphens=False) for note in notes]
        print("\n\n".join([*map(plain, found), "\n".join(wrapped)]))
        return
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console()
    for table in found:
        # As `Text`: names of files may hold what rich takes for its markup.
        drawn = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
        for number, heading in enumerate(table.headings):
            drawn.add_column(Text(heading), justify="right" if number else "left")
        for cells in table.lines:
            drawn.add_row(*map(Text, cells))
        console.print(drawn)
    for line in notes:
        console.print(line, style="dim", highlight=False, markup=False)
