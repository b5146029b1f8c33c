"""Stages that are made from each other, and records that say whether an output is up to date.

A stage has one output: a directory or a file. Its record, `NAME.json`, holds the settings of the
stage and a digest of every stage that it needs. The digest of a stage covers its settings and the
digests of its needs, so a change anywhere is noticed everywhere below it. Times of files play no
part: they change when files are copied.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.jobs.digests import settings_digest
from bothends.storage.records import LARGEST_JSON, parse_json, read_bounded
from bothends.storage.schemas import Strict


@dataclass(frozen=True)
class Stage:
    """An output, and everything that it depends on."""

    name: str
    output: Path
    #: a file or directory inside the output that is there once the output is complete; None if the
    #: output is a single file
    completion_marker: str | None
    #: everything that decides the output, besides the outputs of other stages
    settings: Mapping[str, Any]
    #: names of the stages whose outputs it reads
    needs: tuple[str, ...] = ()
    #: its command continues by itself after an interruption; others begin again
    resumable: bool = False

    @property
    def is_complete(self) -> bool:
        return (self.output / (self.completion_marker or "")).exists()


class StageRecord(Strict):
    """What an output was made from."""

    settings: dict[str, Any]
    #: a digest of each stage that it needs
    inputs: dict[str, str]
    finished: bool


class StaleOutputError(BothendsError):
    """An output is incomplete, or was made from other inputs or settings."""


#: `found`: a complete output without a record, perhaps made by hand.
State = Literal["done", "found", "to do"]


class StageGraph:
    """Stages, each after those it needs, and the directory of their records."""

    def __init__(self, stages: Sequence[Stage], records: Path) -> None:
        self._records = records
        self._inputs: dict[str, dict[str, str]] = {}
        self._digests: dict[str, str] = {}
        for stage in stages:
            inputs = {name: self._digests[name] for name in stage.needs}
            self._inputs[stage.name] = inputs
            self._digests[stage.name] = settings_digest(
                {"settings": stage.settings, "inputs": inputs}
            )

    def digest(self, name: str) -> str:
        """Equal for outputs that are made with equal settings from equal inputs."""
        return self._digests[name]

    def state(self, stage: Stage) -> State:
        """Whether a stage is done; a StaleOutputError if its output was made from something else.

        A resumable stage with other settings is still to do: its command knows which may change.
        """
        record, exists = self._read(stage), os.path.lexists(stage.output)
        if exists and not stage.is_complete and not stage.resumable:
            raise StaleOutputError(
                f"{stage.output}: exists, but is not a complete output of {stage.name}; remove it"
            )
        if not exists or (record is None and stage.resumable):
            return "to do"
        if record is None:
            return "found"
        if other := _difference(record.inputs, self._inputs[stage.name]):
            raise _stale(stage, f"from another output of {other}")
        if other := _difference(record.settings, stage.settings):
            if not stage.resumable:
                raise _stale(stage, f"with another {other}")
            return "to do"
        return "done" if record.finished and stage.is_complete else "to do"

    def adopt(self, stage: Stage) -> None:
        """Record a complete output that was found as an output of today's settings."""
        self._write(stage, finished=True)

    @contextmanager
    def making(self, stage: Stage) -> Iterator[Path]:
        """Give the path to write an output to; on success it gets its name and its record.

        A resumable stage writes to its output itself. Others write beside it, into an empty
        directory or a new file, and replace what is there only when they are complete.
        """
        if stage.resumable:
            self._write(stage, finished=False)
            yield stage.output
            self._write(stage, finished=True)
            return
        partial = stage.output.with_name(f".{stage.output.name}.partial")
        _remove(partial)
        directory = partial.parent if stage.completion_marker is None else partial
        directory.mkdir(parents=True, exist_ok=True)
        yield partial
        _remove(stage.output)
        # The record first: an output that has its name has its record.
        self._write(stage, finished=True)
        os.rename(partial, stage.output)

    def ensure(self, stage: Stage, make: Callable[[Path], None], adopt: bool = False) -> None:
        """Make an output that is not up to date, in place of what is there.

        A complete output without a record is replaced, too, unless it is to be adopted.
        """
        try:
            state = self.state(stage)
        except StaleOutputError:
            state = "to do"
        if state == "found" and adopt:
            self.adopt(stage)
        elif state != "done":
            with self.making(stage) as path:
                make(path)

    def _read(self, stage: Stage) -> StageRecord | None:
        path = self._record_path(stage)
        if not path.is_file():
            return None
        try:
            return StageRecord.model_validate(parse_json(read_bounded(path, LARGEST_JSON)))
        except ValueError:
            raise BothendsError(f"{path}: damaged; remove it, and {stage.output} as well") from None

    def _write(self, stage: Stage, finished: bool) -> None:
        record = StageRecord(
            settings=dict(stage.settings), inputs=self._inputs[stage.name], finished=finished
        )
        self._records.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        write_atomically(self._record_path(stage), text.encode())

    def _record_path(self, stage: Stage) -> Path:
        return self._records / f"{stage.name}.json"


def _stale(stage: Stage, why: str) -> StaleOutputError:
    return StaleOutputError(
        f"{stage.output}: made {why} than now; remove it to have it made again, or name another "
        "directory"
    )


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first key whose value has changed."""
    return next((key for key in {**then, **now} if then.get(key) != now.get(key)), None)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
