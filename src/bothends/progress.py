"""How far a long job is: a bar on a terminal, a plain line now and then elsewhere. On stderr.

with progress("encode", "pairs", total=10_000_000) as advance:
    for batch in batches:
        ...
        advance(len(batch))
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock

#: Seconds between two plain lines: a log of a day's job stays readable.
INTERVAL = 30.0

Advance = Callable[[int], None]


@contextmanager
def progress(
    job: str, unit: str, total: int | None = None, detail: Callable[[], str] | None = None
) -> Iterator[Advance]:
    """Give a function that is to be called with the number of units just done.

    `detail` may have more to say, such as the rates of nodes.
    """
    if sys.stderr.isatty():
        with _bar(job, unit, total, detail) as advance:
            yield advance
    else:
        yield _lines(job, unit, total, detail)


@contextmanager
def _bar(
    job: str, unit: str, total: int | None, detail: Callable[[], str] | None
) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class SpeedColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            # Over the whole time: a burst of results is no speed.
            elapsed = task.elapsed
            return Text(_speed(task.completed / elapsed) if elapsed and task.completed else "")

    class DetailColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(detail() if detail else "")

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        SpeedColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        DetailColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    ) as bar:
        task = bar.add_task(job, total=total)
        yield lambda units: bar.advance(task, units)


def _lines(job: str, unit: str, total: int | None, detail: Callable[[], str] | None) -> Advance:
    started = printed = time.monotonic()
    done = 0
    lock = Lock()  # several workers may be done at once

    def advance(units: int) -> None:
        nonlocal done, printed
        with lock:
            done += units
            now = time.monotonic()
            if now - printed < INTERVAL:
                return
            printed = now
            share = f" of {total:,} ({done / total:.0%})" if total else ""
            speed = done / (now - started)
            left = f", {_time((total - done) / speed)} left" if total and speed else ""
            more = f"; {text}" if detail and (text := detail()) else ""
            print(f"{job}: {done:,}{share} {unit}, {_speed(speed)}{left}{more}", file=sys.stderr)

    return advance


def _speed(speed: float) -> str:
    return f"{speed:,.0f} a second" if speed >= 10 else f"{speed:.1f} a second"


def _time(seconds: float) -> str:
    return str(timedelta(seconds=math.ceil(max(0.0, seconds))))
