"""`bothends denoise`: text from which a model learns to write before it learns its task."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def denoise(
    text: Annotated[list[Path], typer.Option(metavar="FILE...", help="Text, line by line.")],
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="The damaged text to write, line for line.")
    ],
    masked: Annotated[float, typer.Option(help="Share of the words under marks.")] = 0.3,
    span: Annotated[float, typer.Option(help="Words of a span, on average.")] = 3.0,
    deleted: Annotated[float, typer.Option(help="Share of the other words left out.")] = 0.1,
    copied: Annotated[float, typer.Option(help="Share of the lines that stay.")] = 0.2,
    added: Annotated[
        float, typer.Option(help="Words of other lines put in, for each word of a line.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
) -> None:
    """Damage text, so that a model can learn to mend it.

    The damaged text is a source, and the text itself its target: `bothends prepare --source
    DAMAGED --target FILE`. Spans of words become a mark, some words are left out, spans of other
    lines are put in, some lines stay as they are.
    """
    from bothends.cli.outputs import check_writable
    from bothends.errors import BothendsError
    from bothends.files import atomic_file
    from bothends.text.denoising import Damage, damage_lines
    from bothends.text.pairs import read_lines

    damage = Damage(masked, span, deleted, copied, added)
    check_writable({"--output": output})
    if output.exists():
        raise BothendsError(f"--output {output}: exists; remove it, or name another file")
    lines = (line for path in text for line in read_lines(path))
    count = 0
    with atomic_file(output) as file:
        for count, line in enumerate(damage_lines(lines, damage, seed), start=1):  # noqa: B007
            file.write(f"{line}\n".encode())
    print(f"{count:,} lines written to {output}", file=sys.stderr)
