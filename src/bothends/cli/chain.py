"""`bothends chain`: a teacher, its distilled corpus, students, export and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def chain(
    recipe: Annotated[Path, typer.Argument(metavar="CHAIN.yaml", help="What to make of what.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings to change, e.g. distill.beam=1."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print stages and commands, and run nothing.")
    ] = False,
) -> None:
    """Train a teacher, distil it into students, export and evaluate them.

    Run the same command again to resume: stages that are done are skipped.
    """
    from importlib.util import find_spec

    from bothends.chain.recipe import load_chain
    from bothends.chain.run import Chain
    from bothends.chain.stages import stages_of
    from bothends.errors import BothendsError

    if find_spec("torch") is None:
        raise BothendsError(
            "a chain trains, which needs PyTorch: pip install 'bothends[train,eval]'"
        )
    settings = load_chain(recipe, overrides or [])
    stages = Chain(stages_of(settings, recipe.parent), settings.directory)
    if dry_run:
        stages.show()
    elif status := stages.run():
        raise typer.Exit(status)
