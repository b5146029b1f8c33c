"""What a forecast of a job needs to know, measured here: rates, start, overhead, a lost worker.

All of it is done as a job does it, by workers in processes of their own. The rate is that of one
worker while all cores are busy, as they are in a job: cores share memory, and two threads of one
core share it. What a shard costs besides its translations is measured with a teacher that repeats
its lines, in small shards and in large ones: a part for each shard and a part for each line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bothends.distillation.bulk import BulkTranslation, translate_in_bulk
from bothends.distillation.job import describe_job, encode_lines, read_shards
from bothends.distillation.shard_file import Record
from bothends.distillation.shard_run import Shard, TranslateShards
from bothends.distillation.teachers import Teacher, kind_of
from bothends.errors import BothendsError
from bothends.files import write_atomically
from bothends.jobs.pool import ProcessPool
from bothends.storage.places import Place
from bothends.storage.records import LARGEST_JSON, parse_versioned, read_bounded
from bothends.storage.schemas import Strict

FORMAT_VERSION = 1
#: Lines of the shards that the overhead is measured with, and their number.
_SMALL, _LARGE, _SHARDS = 50, 2000, 9


class Measured(Strict):
    """Figures of one machine, model and text. Times are in seconds."""

    format_version: int = FORMAT_VERSION
    engine: str
    #: of processor
    kind: str
    #: lines that were translated for it, and processes that were busy at once
    lines: int
    cores: int
    #: lines a second of one worker, alone and with all cores busy
    rate_alone: float
    rate: float
    #: from the command to a worker's first line
    start: float
    #: from the loss of a worker to the first line of its successor
    restart: float
    #: of a shard, besides what its lines take
    overhead: float
    #: of a line besides its translation, in a worker
    line_overhead: float
    #: of a line, in the one process that describes the text and merges
    serial: float

    @property
    def effective_rate(self) -> float:
        """Lines a second of a worker in a job."""
        return 1 / (1 / self.rate + self.line_overhead)


def read_measured(path: Path) -> Measured:
    """Figures that were stored."""
    try:
        content = parse_versioned(read_bounded(path, LARGEST_JSON), path, FORMAT_VERSION)
        return Measured.model_validate(content)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:  # pydantic's errors are such, too
        raise BothendsError(f"{path}: not written by plan --source FILE --json") from None


def measure(teacher: Teacher, engine: str, source: Place, sample: int, cores: int) -> Measured:
    """Translate the first lines of a text here, alone and with all cores; lose a worker on purpose.

    Takes as long as translating the lines twice, and some seconds.
    """
    lines = next(read_shards([source], sample), [])
    if not lines:
        raise BothendsError(f"{source}: no lines to translate")
    start, alone = _rates(teacher, lines, 1)
    start, together = (start, alone) if cores == 1 else _rates(teacher, lines, cores)
    overhead, line_overhead, serial = _overheads(lines)
    return Measured(
        engine=engine,
        kind=kind_of(teacher),
        lines=len(lines),
        cores=cores,
        rate_alone=alone,
        rate=together,
        start=_command() + start,
        restart=_restart(teacher, lines[:1]),
        overhead=overhead,
        line_overhead=line_overhead,
        serial=serial,
    )


def _command() -> float:
    """Seconds until a command has imported what it needs, and can start workers."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {__name__}"], check=True)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class _Timed:
    """A task, and when it is done, the seconds that it took."""

    lines: list[str]
    is_first: bool
    seconds: float = 0.0


@dataclass(frozen=True)
class _Translate:
    """Work: lines are translated, and it is noted how long that takes."""

    teacher: Teacher

    @contextmanager
    def start(self) -> Iterator[Callable[[_Timed], _Timed]]:
        with self.teacher.start() as translate:

            def timed(task: _Timed) -> _Timed:
                begun = time.perf_counter()
                translate(task.lines)
                return replace(task, seconds=time.perf_counter() - begun)

            yield timed


def _rates(teacher: Teacher, lines: list[str], cores: int) -> tuple[float, float]:
    """Seconds until the last worker begins, and lines a second of each of several at once."""
    begun = time.perf_counter()
    # First a line each, so that all begin the rest at about the same time.
    tasks = [_Timed(lines[:1], True)] * cores + [_Timed(lines, False)] * cores
    start, seconds = 0.0, 0.0
    for done in ProcessPool(cores).run(_Translate(teacher), tasks):
        if done.is_first:
            start = time.perf_counter() - begun - done.seconds
        else:
            seconds += done.seconds
    return start, len(lines) * cores / seconds


@dataclass(frozen=True)
class _Echo:
    """A teacher that repeats lines: what is left is the cost of a job."""

    name: str = "echo"
    has_scores: bool = False

    def settings(self) -> dict[str, Any]:
        return {"teacher": self.name}

    def provenance(self) -> dict[str, Any]:
        return {}

    def packages(self) -> tuple[str, ...]:
        return ()

    @contextmanager
    def start(self) -> Iterator[Callable[[Sequence[str]], list[Record]]]:
        # As long as a translation's record, which has a log probability.
        yield lambda lines: [
            Record(line, -1.2345, len(line), len(line), True, False) for line in lines
        ]


def _overheads(lines: list[str]) -> tuple[float, float, float]:
    """Seconds of a shard, of a line of it, and of a line in the process that merges."""
    with tempfile.TemporaryDirectory(prefix="bothends-plan-") as name, redirect_stderr(StringIO()):
        directory = Path(name)
        text = list(islice(cycle(lines), _LARGE * _SHARDS))
        write_atomically(directory / "text", encode_lines(text))
        times = {}
        for size in (_SMALL, _LARGE):
            place = directory / f"out-{size}.job" / "shards"
            place.mkdir(parents=True)
            job = describe_job(_Echo(), [directory / "text"], size)
            shards = (
                Shard(number, text[number * size : (number + 1) * size])
                for number in range(len(text) // size)
            )
            arrivals = [
                time.perf_counter()
                for _ in ProcessPool(1).run(TranslateShards(_Echo(), job, place), shards)
            ]
            times[size] = (arrivals[-1] - arrivals[0]) / (len(arrivals) - 1)
        line = max(0.0, (times[_LARGE] - times[_SMALL]) / (_LARGE - _SMALL))
        output = directory / f"out-{_LARGE}"
        job_again = BulkTranslation(_Echo(), (directory / "text",), output, shard_lines=_LARGE)
        begun = time.perf_counter()
        translate_in_bulk(job_again)  # all shards are there: describe, and merge
        serial = (time.perf_counter() - begun) / len(text)
    return max(0.0, times[_SMALL] - _SMALL * line), line, serial


@dataclass(frozen=True)
class _CrashOnce:
    """Work whose first worker is killed; a task gives the time of its first line."""

    teacher: Teacher
    marker: Path

    @contextmanager
    def start(self) -> Iterator[Callable[[Sequence[str]], float]]:
        with self.teacher.start() as translate:

            def once(lines: Sequence[str]) -> float:
                if not self.marker.exists():
                    self.marker.write_text(str(time.time()), encoding="utf-8")
                    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
                found = time.time()
                translate(lines)
                return found

            yield once


def _restart(teacher: Teacher, lines: list[str]) -> float:
    with tempfile.TemporaryDirectory(prefix="bothends-plan-") as name, redirect_stderr(StringIO()):
        marker = Path(name) / "killed"
        again = next(iter(ProcessPool(1, attempts=2).run(_CrashOnce(teacher, marker), [lines])))
        return again - float(marker.read_text(encoding="utf-8"))
