"""Tables for people: drawn on a terminal, aligned text elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Cells of text under headings; the first column is a name, the others are figures."""

    title: str
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def plain(table: Table) -> str:
    """A table as aligned text, for files and pipes."""
    widths = [max(map(len, column)) for column in zip(table.headings, *table.lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *figures = (
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *figures]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([table.title, line(table.headings), rule, *map(line, table.lines)])


def print_tables(found: Sequence[Table], notes: Sequence[str]) -> None:
    """Tables, and lines of text below them, on stdout: drawn on a terminal, plain elsewhere."""
    import sys

    if not sys.stdout.isatty():
        print("\n\n".join([*map(plain, found), "\n".join(notes)]))
        return
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    for table in found:
        drawn = RichTable(title=table.title, title_justify="left", title_style="bold")
        for number, heading in enumerate(table.headings):
            drawn.add_column(heading, justify="right" if number else "left")
        for cells in table.lines:
            drawn.add_row(*cells)
        console.print(drawn)
    for line in notes:
        console.print(line, style="dim", highlight=False, markup=False)
