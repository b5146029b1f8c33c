"""`bothends verify`: compare files with their digests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def verify(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]...",
            help="Models (also hf:org/name), corpora, runs or chains. Default: the bundled models.",
        ),
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Record the digests of a model's files as they are now."),
    ] = False,
) -> None:
    """Compare every file with its recorded digest.

    Files that differ are listed, and the exit status is 1.
    """
    from bothends.errors import BothendsError, UsageError
    from bothends.model.bundled import bundled_models, find_if_named, refuse_to_change
    from bothends.verification import record as record_model
    from bothends.verification import verify as verify_directory

    if record:
        if not directories:
            raise UsageError("--record: name the model directories")
        for directory in directories:
            refuse_to_change(directory, "record a directory of yours")
            typer.echo(f"{directory}: {record_model(directory)} files recorded")
        return
    names = directories or [Path(name) for name in bundled_models()]
    problems = 0
    for name in names:
        for found in verify_directory(find_if_named(name, weights=True)):
            state = "as they were written" if not found.problems else "NOT as they were written"
            count = f"{found.files} {'file' if found.files == 1 else 'files'}"
            typer.echo(
                f"{found.directory}: {found.kind}, {count}, {found.bytes / 1e6:,.1f} MB, {state}"
            )
            for problem in found.problems:
                typer.echo(f"  {problem}")
            problems += len(found.problems)
    if problems:
        raise BothendsError(f"{problems} {'problem' if problems == 1 else 'problems'} found")
