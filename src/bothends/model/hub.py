"""Models on the Hugging Face Hub, by name: `hf:org/name`, or `hf:org/name@revision`.

Downloads go through `huggingface_hub` (the extra `hub`) and into its cache. There a snapshot of a
repository is a directory named after its commit, and that is a model directory like any other:

    models--org--name/snapshots/COMMIT/config.json

What is in it belongs to the cache: nobody here writes to it. A branch or a tag moves, a commit does
not, so whatever such a name stands for now is said once and written down as a commit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bothends.errors import BothendsError, UsageError
from bothends.files import real_path

PREFIX = "hf:"
#: How the cache calls a snapshot's directory, and the two above it. No repository has `--` in it.
_SNAPSHOT = re.compile(r"models--(?P<repository>[^/]+)/snapshots/(?P<commit>[0-9a-f]{40})$")
_REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
#: Names that were said to stand for a commit in this process.
_said: set[str] = set()


@dataclass(frozen=True)
class HubName:
    """A repository of the Hub, and which state of it."""

    repository: str
    #: a branch, a tag or a commit; None is the main branch
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubName:
        """The meaning of `hf:org/name` or `hf:org/name@revision`."""
        repository, at, revision = text.removeprefix(PREFIX).partition("@")
        if not is_repository(repository) or (at and not revision):
            raise UsageError(f"{text}: expected hf:org/name or hf:org/name@revision")
        return cls(repository, revision or None)

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}{f'@{self.revision}' if self.revision else ''}"

    @property
    def moves(self) -> bool:
        """Whether it may stand for something else tomorrow."""
        return self.revision is None or not _COMMIT.fullmatch(self.revision)


def is_hub_name(model: Path | str) -> bool:
    """Whether a model's name is one of the Hub's, and not a path."""
    return str(model).startswith(PREFIX)


def is_repository(text: str) -> bool:
    """Whether a repository could be called so."""
    return bool(_REPOSITORY.fullmatch(text)) and ".." not in text and "--" not in text


def origin(directory: Path | str) -> HubName | None:
    """Where a snapshot in the Hub's cache comes from, commit included; None for other directories.

    Its path tells, so that processes that are handed a path need not be told besides.
    """
    found = _SNAPSHOT.search(Path(directory).as_posix())
    if found is None:
        return None
    return HubName(found["repository"].replace("--", "/"), found["commit"])


def shown(directory: Path | str) -> str:
    """A directory as a user knows it: a snapshot by its name and commit, others as they are."""
    return str(origin(directory) or directory)


def short_name(model: Path | str) -> str:
    """The last part of a model's name, however it is named."""
    name = HubName.parse(str(model)) if is_hub_name(model) else origin(model)
    return real_path(Path(model)).name if name is None else name.repository.rpartition("/")[2]


def download(name: HubName, patterns: Sequence[str]) -> Path:
    """The snapshot of a repository, with those files at its top that match one of the patterns.

    Files in the cache are not downloaded again, and with HF_HUB_OFFLINE none is. Nothing in it is
    executed.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise BothendsError(
            f"{name}: the Hub needs huggingface_hub, which is not installed: "
            "pip install 'bothends[hub]'"
        ) from None
    with hub_errors(str(name)), progress_on_terminals():
        snapshot = huggingface_hub.snapshot_download(
            name.repository,
            revision=name.revision,
            allow_patterns=list(patterns),
            ignore_patterns=["*/*"],  # a `*` matches slashes, too
            library_name="bothends",
        )
    directory = Path(snapshot)
    _say_commit(name, directory)
    return directory


def _say_commit(name: HubName, directory: Path) -> None:
    if name.moves and str(name) not in _said and (found := origin(directory)):
        _said.add(str(name))
        which = name.revision or "the main branch"
        print(f"bothends: {name}: {which} is now {found}", file=sys.stderr)


@contextmanager
def hub_errors(name: str) -> Iterator[None]:
    """Turn what `huggingface_hub` raises into a line about `name`."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise UsageError(f"{name}: not a name of the Hub ({_line(error)})") from None
    except errors.GatedRepoError:
        raise BothendsError(
            f"{name}: gated; ask for access on its page, then log in with `hf auth login`"
        ) from None
    except errors.RepositoryNotFoundError:
        raise BothendsError(
            f"{name}: no such repository, or a private one; check the name, or log in with "
            "`hf auth login`"
        ) from None
    except errors.RevisionNotFoundError:
        raise BothendsError(f"{name}: no such branch, tag or commit in this repository") from None
    except errors.LocalEntryNotFoundError as error:
        if _is_offline():
            raise BothendsError(
                f"{name}: not in the cache, or not all of it, and HF_HUB_OFFLINE forbids a download"
            ) from None
        raise BothendsError(
            f"{name}: the Hub cannot be reached, and the cache does not have all of it "
            f"({_line(error.__cause__ or error)})"
        ) from None
    except errors.OfflineModeIsEnabled:
        raise BothendsError(f"{name}: HF_HUB_OFFLINE forbids asking the Hub") from None
    except errors.HfHubHTTPError as error:
        status = getattr(getattr(error, "response", None), "status_code", "?")
        hint = "; log in with `hf auth login`" if status in (401, 403) else ""
        reason = getattr(error, "server_message", None) or _line(error)
        raise BothendsError(f"{name}: the Hub answered {status} ({reason}){hint}") from None
    # The class of the HTTP library's errors, whichever library it is, and the disk's.
    except (*errors.HfHubHTTPError.__bases__, OSError) as error:
        if getattr(error, "strerror", None):
            where = getattr(error, "filename", None) or "the Hub's cache"
            raise BothendsError(f"{name}: {where}: {error.strerror}") from None
        raise _broken_off(name, error) from None
    except (ValueError, RuntimeError) as error:  # bad metadata; the storage's own library
        raise _broken_off(name, error) from None


def _broken_off(name: str, error: BaseException) -> BothendsError:
    return BothendsError(f"{name}: the transfer failed ({type(error).__name__}: {_line(error)})")


def _line(error: BaseException) -> str:
    """The first line of an error that has words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _is_offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


@contextmanager
def progress_on_terminals() -> Iterator[None]:
    """Progress bars where somebody looks, as everywhere here; otherwise lines fill a log."""
    from huggingface_hub import constants
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    decided = constants.HF_HUB_DISABLE_PROGRESS_BARS is not None or are_progress_bars_disabled()
    if decided or sys.stderr.isatty():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
