"""`bothends order`: show a generation order."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer


def order(
    name: Annotated[
        str, typer.Argument(metavar="ORDER", help="An order, such as 2x1 or 2x2+vanilla-mask.")
    ],
    length: Annotated[
        int | None, typer.Option(min=0, max=10_000, help="Tokens of the target.  [default: 6]")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Show it on these words instead of numbered tokens.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Also draw it, as SVG, into this file.")] = None,
) -> None:
    """Show which token is generated at which step.

    Also shows positions, directions and the mask, as the network gets them.
    """
    from bothends.cli.outputs import check_writable
    from bothends.drawing import draw_svg, draw_text, in_ascii
    from bothends.errors import UsageError
    from bothends.files import write_output
    from bothends.order import GenerationOrder

    check_writable({"--svg": svg})
    parsed = GenerationOrder.parse(name)
    if text is None:
        words = [str(number) for number in range(1, (6 if length is None else length) + 1)]
    elif length is not None:
        raise UsageError("give --length or --text, not both: each sets the length of the target")
    else:
        words = text.split()
        if not all(word.isprintable() for word in words):
            raise UsageError("--text has a character that cannot be printed")
    if svg is not None:
        write_output(svg, draw_svg(parsed, words).encode())
    terminal = sys.stdout.isatty()
    drawing = draw_text(
        parsed,
        words,
        width=shutil.get_terminal_size().columns if terminal else 100,
        color=terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb",
    )
    try:
        drawing.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        drawing = in_ascii(drawing)
    print(drawing, end="")
