"""A model directory to a repository of the Hub, in one commit: all of it, or nothing.

Only the files of a model directory go there, and the card. Files of an earlier model that this one
does not have are removed by the same commit; whatever else is in the repository stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bothends.errors import BothendsError, UsageError, warn
from bothends.files import real_path
from bothends.model.directory import CARD, FILES, read_description
from bothends.model.graph_files import missing_graphs
from bothends.model.hub import PREFIX, hub_errors, is_repository, progress_on_terminals
from bothends.publishing.card import Card, make_card
from bothends.publishing.scores import read_scores
from bothends.storage.digests import DIGESTS
from bothends.verification import verify

MAIN = "main"


@dataclass(frozen=True)
class PushOptions:
    """Where a model goes, and what its card says."""

    repository: str
    #: a branch, made if it is not there
    revision: str | None = None
    private: bool = False
    license: str | None = None
    #: JSON files of `bothends evaluate`
    metrics: tuple[Path, ...] = ()
    message: str | None = None


@dataclass(frozen=True)
class Upload:
    """Everything that one commit will hold."""

    directory: Path
    options: PushOptions
    files: tuple[str, ...]
    card: Card

    @property
    def bytes(self) -> int:
        return sum((self.directory / name).stat().st_size for name in self.files)


def plan_upload(directory: Path, options: PushOptions) -> Upload:
    """Check a model directory and write its card; nothing is sent."""
    repository = options.repository.removeprefix(PREFIX)
    if "/" not in repository or not is_repository(repository):
        raise UsageError(f"{options.repository}: expected a repository, org/name")
    description = read_description(directory)
    _check_files(directory)
    scores = [read_scores(path, directory) for path in options.metrics]
    card = make_card(directory, description, repository, options.license, scores)
    files = tuple(name for name in (*FILES, DIGESTS) if (directory / name).is_file())
    if missing_graphs(directory):
        warn(f"{directory}: not exported, so nobody can translate with it; `bothends export` first")
    return Upload(directory, options, files, card)


def _check_files(directory: Path) -> None:
    """Refuse a damaged model; one without digests is taken as it is."""
    if not (directory / DIGESTS).is_file():
        return
    problems = [problem for found in verify(directory) for problem in found.problems]
    if problems:
        raise BothendsError(f"{problems[0]}; a damaged model is not published")


def push(upload: Upload) -> str:
    """Send it as one commit; the commit."""
    try:
        import huggingface_hub
    except ImportError:
        raise BothendsError(
            "push needs huggingface_hub, which is not installed: pip install 'bothends[hub]'"
        ) from None
    options = upload.options
    repository = options.repository.removeprefix(PREFIX)
    branch = options.revision or MAIN
    api = huggingface_hub.HfApi(library_name="bothends")
    with hub_errors(f"{PREFIX}{repository}"), progress_on_terminals():
        api.create_repo(repository, private=options.private or None, exist_ok=True)
        if branch != MAIN:
            api.create_branch(repository, branch=branch, exist_ok=True)
        head = api.repo_info(repository, revision=branch)
        there = [each.rfilename for each in head.siblings or ()]
        add, delete = huggingface_hub.CommitOperationAdd, huggingface_hub.CommitOperationDelete
        operations = [
            add(path_in_repo=CARD, path_or_fileobj=str(upload.card).encode()),
            *(add(name, upload.directory / name) for name in upload.files),
            *(delete(name) for name in _left_over(there, upload.files)),
        ]
        commit = api.create_commit(
            repository,
            operations,
            commit_message=options.message or f"Upload {real_path(upload.directory).name}",
            revision=branch,
            # Refused if somebody else has pushed since.
            parent_commit=head.sha,
        )
    return str(commit.oid)


def _left_over(there: Sequence[str], files: Sequence[str]) -> list[str]:
    """Files of an earlier model, which would be taken for this one's."""
    return [name for name in there if name in (*FILES, DIGESTS) and name not in files]
