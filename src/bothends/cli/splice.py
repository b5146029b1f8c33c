"""`bothends splice`: more source text for a teacher to translate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def splice(
    source: Annotated[list[Path], typer.Option(metavar="FILE...", help="Text, line by line.")],
    lines: Annotated[int, typer.Option(metavar="N", min=1, help="Number of new lines.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="The text to write.")],
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...", help="Files whose lines must not come out, e.g. a test set."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
) -> None:
    """Make new source lines from old ones, for a teacher.

    Two lines that share a pair of neighbouring words are joined there: the beginning of one, the
    end of the other.
    """
    from bothends.cli.outputs import check_writable
    from bothends.errors import BothendsError
    from bothends.files import write_atomically
    from bothends.text.pairs import read_lines
    from bothends.text.splicing import splice as splice_lines

    check_writable({"--output": output})
    if output.exists():
        raise BothendsError(f"--output {output}: exists; remove it, or name another file")
    given = [line for path in source for line in read_lines(path)]
    unwanted = {line for path in exclude or () for line in read_lines(path)}
    made = list(splice_lines(given, lines, seed, unwanted))
    write_atomically(output, "".join(f"{line}\n" for line in made).encode())
    note = "" if len(made) == lines else f"; the text does not give {lines:,}"
    print(f"{len(made):,} new lines written to {output}{note}", file=sys.stderr)
