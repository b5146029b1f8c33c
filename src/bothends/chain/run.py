"""Running a chain: skip what is done, go on with what was begun, refuse what does not fit.

Beside the outputs there is a record of each stage, `chain/STAGE.json`: its settings and a digest of
every stage that it read from. A stage is done if its record says so, its output is there, and both
settings and digests are those of today.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bothends.chain.process import run_command
from bothends.chain.stages import RECORDS, Stage
from bothends.errors import BothendsError
from bothends.files import locked, write_atomically
from bothends.records import Strict


class Record(Strict):
    """What a stage was made of."""

    settings: dict[str, Any]
    #: a digest of each stage that it needs
    inputs: dict[str, str]
    finished: bool


State = Literal["done", "found", "to do"]


class Chain:
    """The stages of a recipe, and their records in a directory."""

    def __init__(self, stages: Sequence[Stage], directory: Path) -> None:
        self._stages = stages
        self._records = directory / RECORDS
        self._inputs: dict[str, dict[str, str]] = {}
        digests: dict[str, str] = {}
        for stage in stages:
            inputs = {name: digests[name] for name in stage.needs}
            self._inputs[stage.name] = inputs
            digests[stage.name] = _digest({"settings": stage.settings, "inputs": inputs})

    def show(self) -> None:
        """Print every stage and its command, and do nothing."""
        for number, stage in enumerate(self._stages, start=1):
            print(f"{self._title(number, stage)}: {self._state(stage)}, {stage.output}")
            print(f"    {stage.command}")

    def run(self) -> int:
        """Do what is to be done; 0, or the status of the command that did not succeed."""
        try:
            self._records.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BothendsError(f"{self._records}: cannot be made ({error.strerror})") from None
        with locked(self._records / ".lock", f"{self._records.parent}: a chain is running there"):
            return self._run()

    def _run(self) -> int:
        for number, stage in enumerate(self._stages, start=1):
            title, state = self._title(number, stage), self._state(stage)
            if state == "done":
                _say(f"{title}: done, {stage.output}")
                continue
            if state == "found":
                _say(f"{title}: found {stage.output}, which is taken as it is")
                self._write(stage, finished=True)
                continue
            _say(f"{title}: {stage.command}")
            if status := self._do(stage):
                _say(f"{title}: ended with status {status}; the same command goes on from here")
                return status
        _say(f"all {len(self._stages)} stages are done")
        return 0

    def _title(self, number: int, stage: Stage) -> str:
        return f"[{number}/{len(self._stages)}] {stage.name}"

    def _state(self, stage: Stage) -> State:
        """Whether a stage is done; an error if its output was made from something else."""
        record, there = self._read(stage), os.path.lexists(stage.output)
        complete = (stage.output / stage.proof).exists()
        if there and not complete and not stage.resumes:
            raise BothendsError(
                f"{stage.output}: exists, but is no complete output of {stage.name}; remove it"
            )
        if not there or (record is None and stage.resumes):
            return "to do"
        if record is None:
            return "found"
        if other := _difference(record.inputs, self._inputs[stage.name]):
            raise self._outdated(stage, f"from another output of {other}")
        if other := _difference(record.settings, stage.settings):
            if not stage.resumes:
                raise self._outdated(stage, f"with another {other}")
            return "to do"  # the command itself knows which of its settings may change
        return "done" if record.finished and complete else "to do"

    def _outdated(self, stage: Stage, why: str) -> BothendsError:
        return BothendsError(
            f"{stage.output}: made {why} than now; remove it to have it made again, or name "
            "another directory"
        )

    def _do(self, stage: Stage) -> int:
        if stage.resumes:
            self._write(stage, finished=False)
            status = run_command([*stage.arguments(stage.output), *stage.harmless], stage.processes)
            if not status:
                self._write(stage, finished=True)
            return status
        partial = stage.output.with_name(f".{stage.output.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        status = run_command([*stage.arguments(partial), *stage.harmless], stage.processes)
        if not status:
            # The record first: an output that has its name has its record.
            self._write(stage, finished=True)
            os.rename(partial, stage.output)
        return status

    def _read(self, stage: Stage) -> Record | None:
        path = self._record_path(stage)
        if not path.is_file():
            return None
        try:
            return Record.model_validate(json.loads(path.read_bytes()))
        except ValueError:
            raise BothendsError(f"{path}: damaged; remove it, and {stage.output} as well") from None

    def _write(self, stage: Stage, finished: bool) -> None:
        record = Record(
            settings=dict(stage.settings), inputs=self._inputs[stage.name], finished=finished
        )
        path = self._record_path(stage)
        text = json.dumps(record.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        write_atomically(path, text.encode())

    def _record_path(self, stage: Stage) -> Path:
        return self._records / f"{stage.name}.json"


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first key whose value is another one."""
    return next((key for key in {**then, **now} if then.get(key) != now.get(key)), None)


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
