"""`bothends train`: a model from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.yaml", help="All settings of the run.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings to change, e.g. order=2x1."),
    ] = None,
) -> None:
    """Train a model, or resume an interrupted run.

    Run the same command again to resume. Several processes: torchrun --nproc-per-node 2 -m bothends
    train RECIPE.yaml.
    """
    from bothends.cli.packages import require_torch
    from bothends.training.recipe_file import load_recipe

    require_torch("training")
    settings = load_recipe(recipe, overrides or [])
    from bothends.training.loop import train as run

    outcome = run(settings)
    if outcome.signal:
        raise typer.Exit(128 + outcome.signal)
