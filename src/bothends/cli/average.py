"""`bothends average`: one model from the last checkpoints of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run of bothends train.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="The model directory to write.")],
    last: Annotated[
        int, typer.Option(metavar="K", min=1, help="Number of checkpoints to average.")
    ] = 5,
) -> None:
    """Average the weights of the last K checkpoints of a run."""
    from bothends.cli.packages import require_torch
    from bothends.errors import BothendsError
    from bothends.files import is_new

    require_torch("averaging")
    from bothends.model.torch.averaging import average_models
    from bothends.training.run import RunDirectory

    directory = RunDirectory(run)
    if not directory.checkpoints.is_dir():
        raise BothendsError(f"{run}: not a run of bothends train, it has no checkpoints")
    checkpoints = directory.latest()
    if len(checkpoints) < last:
        raise BothendsError(
            f"{run}: keeps {len(checkpoints)} checkpoints, fewer than the {last} to average; lower "
            "--last, or train with a larger checkpoints.keep or a smaller checkpoints.every"
        )
    if not is_new(output):
        raise BothendsError(f"{output}: exists and is not empty; name a new directory")
    chosen = checkpoints[-last:]
    average_models(chosen, output)
    names = f"{chosen[0].name} to {chosen[-1].name}"
    print(f"average of {len(chosen)} checkpoints, {names}, written to {output}", file=sys.stderr)
