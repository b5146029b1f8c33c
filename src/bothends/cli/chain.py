"""`bothends chain`: a teacher, its distilled corpus, students, export and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def chain(
    recipe: Annotated[
        Path, typer.Argument(metavar="CHAIN.yaml", help="The chain's recipe, a YAML file.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings to change, e.g. distill.beam=1."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print stages and commands, and run nothing.")
    ] = False,
) -> None:
    """Train a teacher and its students, export and evaluate them.

    Run the same command again to resume: stages that are done are skipped.
    """
    from bothends.chain.recipe import check_texts, load_chain
    from bothends.chain.run import Chain
    from bothends.chain.stages import stages_of
    from bothends.cli.packages import require_torch

    require_torch("a chain")
    settings = load_chain(recipe, overrides or [])
    check_texts(settings)
    stages = Chain(stages_of(settings, recipe.parent), settings.directory)
    if dry_run:
        stages.show()
    elif status := stages.run():
        raise typer.Exit(status)
