"""Running a chain: skip finished stages, resume interrupted ones, refuse outputs that do not fit.

The records of its stages (`bothends.jobs.stages`) are beside the outputs, in `chain/STAGE.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bothends.chain.command import CommandStage
from bothends.chain.process import run_command
from bothends.chain.stages import RECORDS
from bothends.errors import BothendsError
from bothends.files import locked
from bothends.jobs.stages import StageGraph


class Chain:
    """The stages of a recipe, and their records in a directory."""

    def __init__(self, stages: Sequence[CommandStage], directory: Path) -> None:
        self._stages = stages
        self._records = directory / RECORDS
        self._graph = StageGraph(stages, self._records)

    def show(self) -> None:
        """Print every stage and its command, and do nothing."""
        for number, stage in enumerate(self._stages, start=1):
            print(f"{self._title(number, stage)}: {self._graph.state(stage)}, {stage.output}")
            print(f"    {stage.command}")

    def run(self) -> int:
        """Run the stages that are not done; 0, or the exit status of the command that failed."""
        try:
            self._records.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BothendsError(f"{self._records}: cannot be made ({error.strerror})") from None
        with locked(self._records / ".lock", f"{self._records.parent}: a chain is running there"):
            return self._run()

    def _run(self) -> int:
        for number, stage in enumerate(self._stages, start=1):
            title, state = self._title(number, stage), self._graph.state(stage)
            if state == "done":
                _say(f"{title}: done, {stage.output}")
            elif state == "found":
                _say(f"{title}: found {stage.output}, which is taken as it is")
                self._graph.adopt(stage)
            else:
                _say(f"{title}: {stage.command}")
                try:
                    self._make(stage)
                except _CommandFailedError as failure:
                    _say(f"{title}: its options are set by {stage.section} of the chain")
                    _say(
                        f"{title}: ended with status {failure.status}; the same command goes on "
                        "from here"
                    )
                    return failure.status
        _say(f"all {len(self._stages)} stages are done")
        return 0

    def _title(self, number: int, stage: CommandStage) -> str:
        return f"[{number}/{len(self._stages)}] {stage.name}"

    def _make(self, stage: CommandStage) -> None:
        with self._graph.making(stage) as output:
            if status := run_command(stage.arguments_for(output), stage.processes):
                raise _CommandFailedError(status)


class _CommandFailedError(Exception):
    """A command failed, and has printed its own error."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
