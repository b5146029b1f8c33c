"""`bothends order`: show a generation order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def order(
    name: Annotated[str, typer.Argument(metavar="ORDER", help="Such as 2x1 or 2x2+vanilla-mask.")],
    length: Annotated[int, typer.Option(min=0, help="Tokens of the target.")] = 6,
    svg: Annotated[Path | None, typer.Option(help="Draw it into this file.")] = None,
) -> None:
    """Show which token is generated at which step, with positions, directions and mask."""
    from bothends.order import GenerationOrder

    print(GenerationOrder.parse(name).permutation(length))
