"""A run directory: the checkpoints of a training run, written so that no one sees half of one.

    recipe.yaml            the recipe of the run, complete
    log.jsonl              one record per line: training, validation
    curves.svg             the learning curves
    checkpoints/update-00002000/    a model directory, with the state of the training in
        optimiser.safetensors       moments of Adam, or Muon
        training.json               how far the run is
    best, last             links to checkpoints

A checkpoint is written under a hidden name, flushed to disk, and renamed when it is complete. So a
directory `update-*` is a whole checkpoint whenever the process, or the machine, was stopped. Random
numbers need no state: dropout is seeded by the number of the update.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from bothends.errors import BothendsError
from bothends.files import locked, sync_directory, write_atomically
from bothends.storage.digests import check_file, record_digests
from bothends.storage.records import parse_json
from bothends.storage.yaml_records import parse_yaml
from bothends.training.batches import Position
from bothends.training.recipe import Recipe

RECIPE = "recipe.yaml"
LOG = "log.jsonl"
CURVES = "curves.svg"
OPTIMISER = "optimiser.safetensors"
PROGRESS = "training.json"
LOCK = ".lock"

#: Settings that may change when a run goes on: they do not alter what has been computed.
MAY_CHANGE = (
    "training.updates",
    "training.epochs",
    "training.minutes",
    "validation.patience",
    "checkpoints.keep",
    "threads",
    "device",
    "precision",
    "log_every",
    "tensorboard",
    "run",
)


@dataclass
class Progress:
    """How far a run is: all that it needs to resume, except weights and moments."""

    update: int = 0
    position: Position = field(default_factory=Position)
    target_tokens: int = 0
    #: seconds of training so far, validation included
    seconds: float = 0.0
    #: the last update after which the model was judged
    validated_update: int = 0
    best_value: float | None = None
    best_update: int = 0
    validations_since_best: int = 0
    #: since the last line of the log
    loss_sum: float = 0.0
    loss_tokens: int = 0
    #: length of the log when this was saved
    log_bytes: int = 0
    #: whether the recipe asked for this checkpoint, or an interruption
    scheduled: bool = True

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=2) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes) -> Progress:
        content = parse_json(text)
        return cls(**{**content, "position": Position(**content["position"])})


@dataclass
class RunDirectory:
    """Reads and writes the checkpoints of one run."""

    path: Path
    checkpoints: Path = field(init=False)

    def __post_init__(self) -> None:
        self.checkpoints = self.path / "checkpoints"

    @property
    def log(self) -> Path:
        return self.path / LOG

    @contextmanager
    def locked(self, patience: float = 0.0) -> Iterator[None]:
        """Keep other trainings out of the directory, which is made if need be.

        Another one has `patience` seconds to leave.
        """
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BothendsError(f"{self.path}: cannot be made ({error.strerror})") from None
        running = f"{self.path}: a training is running there; wait for it, or name another "
        until = time.monotonic() + patience
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(self.path / LOCK, f"{running}directory (run=DIR)"))
                    break
                except BothendsError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(1.0)
            yield

    def open(self, recipe: Recipe) -> None:
        """Begin the run, or check that it is the same one and clear what was left half-written."""
        for leftover in self.checkpoints.glob(".update-*"):
            shutil.rmtree(leftover)
        path = self.path / RECIPE
        if path.exists() and self.complete():
            self._check_same(recipe)
        text = yaml.safe_dump(recipe.dump(), sort_keys=False, allow_unicode=True)
        write_atomically(path, text.encode())
        if complete := self.complete():  # whose links may be missing, and which may be too many
            self._link_checkpoint(complete[-1], self.load_progress(complete[-1]))
            self._prune(recipe.checkpoints.keep)

    def recipe(self) -> Recipe:
        """The recipe that the run was begun with."""
        path = self.path / RECIPE
        try:
            # Through `Recipe`, so that settings which are newer than the run have their defaults.
            return Recipe.model_validate(parse_yaml(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, yaml.YAMLError):
            raise BothendsError(f"{path}: damaged, or of another version of bothends") from None

    def _check_same(self, recipe: Recipe) -> None:
        for key, before, now in differences(self.recipe(), recipe):
            raise BothendsError(
                f"{self.path}: holds a run with {key}={before}, but this recipe has {now}; "
                "name another directory (run=DIR) or remove this one"
            )

    def complete(self) -> list[Path]:
        """The complete checkpoints, oldest first."""
        return sorted(self.checkpoints.glob("update-*"))

    def newest_update(self) -> int:
        """The update of the newest checkpoint, 0 without one, and -1 if there is no run here."""
        if not (self.path / RECIPE).exists():
            return -1
        return max(map(_update_of, self.complete()), default=0)

    def scheduled(self) -> list[Path]:
        """Those of them that the recipe asked for, as opposed to an interruption."""
        return [path for path in self.complete() if self.load_progress(path).scheduled]

    def latest(self) -> list[Path]:
        """The newest of them without a gap: not the best, if that is older."""
        scheduled, every = self.scheduled(), self.recipe().checkpoints.every
        first = len(scheduled) - 1
        while (
            first > 0 and _update_of(scheduled[first]) - _update_of(scheduled[first - 1]) <= every
        ):
            first -= 1
        return scheduled[first:]

    def save(
        self,
        progress: Progress,
        keep: int,
        write_model: Callable[[Path], None],
        moments: dict[str, Tensor],
    ) -> Path:
        """Write a checkpoint, point `last` and `best` at theirs, and remove what is too old."""
        final = self.checkpoints / f"update-{progress.update:08}"
        # Never a name that somebody else could have foreseen, and put a link there.
        partial = self.checkpoints / f".{final.name}.{secrets.token_hex(8)}.partial"
        if final.exists():  # an interrupted run has been judged after all
            write_atomically(final / PROGRESS, progress.to_json())
        else:
            write_model(partial)
            write_atomically(partial / OPTIMISER, save(moments, metadata={"format": "pt"}))
            record_digests(partial, [OPTIMISER])
            write_atomically(partial / PROGRESS, progress.to_json())
            os.rename(partial, final)
            sync_directory(self.checkpoints)
        self._link_checkpoint(final, progress)
        self._prune(keep)
        return final

    def load(self, checkpoint: Path) -> tuple[Progress, dict[str, Tensor]]:
        """The state of the training at a checkpoint."""
        progress = self.load_progress(checkpoint)
        check_file(checkpoint / OPTIMISER)
        try:
            moments: dict[str, Tensor] = load_file(checkpoint / OPTIMISER)
        except (OSError, SafetensorError) as error:
            raise BothendsError(_damaged(checkpoint / OPTIMISER, error)) from None
        return progress, moments

    def load_progress(self, checkpoint: Path) -> Progress:
        try:
            return Progress.from_json((checkpoint / PROGRESS).read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BothendsError(_damaged(checkpoint / PROGRESS, error)) from None

    def _link_checkpoint(self, newest: Path, progress: Progress) -> None:
        self._link("last", newest)
        if progress.best_update == progress.update:
            self._link("best", newest)

    def _link(self, name: str, checkpoint: Path) -> None:
        new = self.path / f".{name}.{os.getpid()}"
        new.unlink(missing_ok=True)
        new.symlink_to(checkpoint.relative_to(self.path))
        os.replace(new, self.path / name)

    def _prune(self, keep: int) -> None:
        """Keep the last scheduled checkpoints, the newest and the best."""
        complete = self.complete()
        scheduled = self.scheduled()
        best = (self.path / "best").resolve()
        for path in complete:
            if path not in scheduled[-keep:] and path != complete[-1] and path.resolve() != best:
                # Renamed first: a checkpoint that is being removed is no longer one.
                leaving = path.with_name(f".{path.name}.leaving")
                os.rename(path, leaving)
                shutil.rmtree(leaving)


def _update_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("update-"))


def _damaged(path: Path, error: Exception) -> str:
    return f"{path}: damaged ({error}); remove this checkpoint to go on from the one before"


def differences(before: Recipe, now: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Settings by which two recipes are different runs: key, and both values."""
    may_change = set(MAY_CHANGE)
    if now.optimiser.schedule == "cosine":
        may_change.remove("training.updates")  # the end of the run shapes the whole schedule
    old, new = flatten(before.dump()), flatten(now.dump())
    for key in sorted(old.keys() | new.keys()):
        if key not in may_change and old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def flatten(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
