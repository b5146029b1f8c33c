"""`bothends demo`: a tour of the bundled models."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    rounds: Annotated[
        int, typer.Option(min=1, max=100_000, help="Timed translations of each sentence.")
    ] = 20,
) -> None:
    """See how the bundled models write, and how fast.

    It takes about a minute and needs nothing but the installed package.
    """
    from bothends.demo import show

    show(rounds)
