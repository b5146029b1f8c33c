"""`bothends push`: a model and its card to the Hugging Face Hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def push(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Model directory.")],
    repository: Annotated[str, typer.Argument(metavar="ORG/NAME", help="Repository on the Hub.")],
    license_: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="ID",
            help="License, as the Hub spells it: cc-by-4.0. Default: the card's.",
        ),
    ] = None,
    metrics: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="JSON of bothends evaluate; may be repeated."),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="BRANCH", help="Branch to commit to. Default: main.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make a new repository private.")
    ] = False,
    message: Annotated[str | None, typer.Option(help="Commit message.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing: print the card, and list the files.")
    ] = False,
) -> None:
    """Publish a model on the Hugging Face Hub, with a model card.

    All files go into one commit. A README.md in DIR is kept; missing front matter is added to it.
    """
    from bothends.model.bundled import find_model
    from bothends.publishing.push import PushOptions, plan_upload
    from bothends.publishing.push import push as send

    options = PushOptions(
        repository=repository,
        revision=revision,
        private=private,
        license=license_,
        metrics=tuple(metrics or ()),
        message=message,
    )
    upload = plan_upload(find_model(directory), options)
    size = f"{len(upload.files) + 1} files, {upload.bytes / 1e6:,.1f} MB"
    if dry_run:
        sys.stdout.write(str(upload.card))
        files = ", ".join((*upload.files, "README.md"))
        print(f"{repository}: nothing sent; it would get {size}: {files}", file=sys.stderr)
        return
    commit = send(upload)
    name = repository.removeprefix("hf:")
    print(f"hf:{name}@{commit}: {size}", file=sys.stderr)
