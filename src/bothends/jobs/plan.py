"""What a job will take: time, core hours, lost workers, and the size of shards that suits it best.

A shard of `s` lines takes a worker `t = s / rate + overhead` seconds. Workers are lost at random,
each once in `mean_time_between_losses` seconds; a lost worker costs what it did of its shard, and
`restart` seconds until a successor begins the shard again. The expected time of a shard is then

    E(t) = (1 / l + restart) * (exp(l * t) - 1)        with l = 1 / mean_time_between_losses

which is `t` where nobody is lost. Workers take shards as they become free; how long the last of
them keeps the job waiting has no such formula, so the course of the job is simulated, event by
event. Where there are so many shards that this does not matter, the formula alone serves.

Some workers may be slower than others. And some work is done by one process, whatever the number of
workers: reading the text at the beginning, to describe it, and merging at the end.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, replace
from statistics import fmean

from bothends.errors import UsageError
from bothends.jobs import SHARD_LINES

#: Shards up to which the course of a job is simulated, and how often.
SIMULATED_SHARDS, COURSES = 20_000, 3
#: Sizes of shards that are considered, in lines.
SHARD_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True)
class JobSize:
    """A corpus, a cluster and what was measured of them. Times are in seconds."""

    lines: int
    workers: int
    #: lines that one worker translates in a second
    rate: float
    shard_lines: int = SHARD_LINES
    #: of each shard: reading, writing, handing over
    overhead: float = 0.05
    #: from the command to the first line of a worker: imports, loading the model
    start: float = 5.0
    #: from the loss of a worker to the first line of its successor
    restart: float = 10.0
    #: of one worker; infinite if none is ever lost
    mean_time_between_losses: float = math.inf
    #: the share of workers that are slow, and how many times as long they take
    stragglers: float = 0.0
    slowness: float = 1.0
    #: for each line, of the one process that describes the text and merges
    serial: float = 0.0
    #: that the text is split into, each with such a process of its own
    jobs: int = 1

    def __post_init__(self) -> None:
        positive = ("lines", "workers", "rate", "shard_lines", "jobs", "mean_time_between_losses")
        for name in positive:
            if not getattr(self, name) > 0:
                raise UsageError(f"{name.replace('_', ' ')}: expected more than 0")
        for name in ("overhead", "start", "restart", "serial"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name}: expected 0 or more seconds")
        if not 0 <= self.stragglers <= 1 or not 1 <= self.slowness < math.inf:
            raise UsageError("stragglers: expected a share from 0 to 1, and a slowness from 1 on")

    @property
    def can_lose(self) -> bool:
        """Whether workers are lost at all."""
        return not math.isinf(self.mean_time_between_losses)

    @property
    def shards(self) -> int:
        return -(-self.lines // self.shard_lines)

    @property
    def serial_seconds(self) -> float:
        """Reading the text at the beginning, and merging at the end."""
        return self.lines * self.serial / self.jobs

    @property
    def capacity(self) -> float:
        """How many workers of full speed all of them together are worth."""
        worth = 1 - self.stragglers + self.stragglers / self.slowness
        return min(self.workers, self.shards) * worth

    @property
    def shard_seconds(self) -> float:
        """The time of a shard if its worker is not lost."""
        return min(self.lines, self.shard_lines) / self.rate + self.overhead

    @property
    def expected_shard_seconds(self) -> float:
        """The time of a shard, second attempts included."""
        if not self.can_lose:
            return self.shard_seconds
        exponent = self.shard_seconds / self.mean_time_between_losses
        if exponent > 700:
            return math.inf
        return (self.mean_time_between_losses + self.restart) * math.expm1(exponent)


@dataclass(frozen=True)
class Forecast:
    """What a job is expected to take."""

    size: JobSize
    seconds: float
    core_hours: float
    #: workers that are lost meanwhile
    losses: float
    #: of the core hours, the share in which lines were translated that counted
    efficiency: float


def forecast(size: JobSize) -> Forecast:
    """Time and cost of a job, on average."""
    each = size.expected_shard_seconds
    if math.isinf(each):
        return Forecast(size, math.inf, math.inf, math.inf, 0.0)
    if size.shards <= SIMULATED_SHARDS:
        courses = COURSES if size.can_lose or size.stragglers else 1
        found = [simulate(size, seed) for seed in range(courses)]
        seconds, losses = (
            fmean(each.seconds for each in found),
            fmean(each.losses for each in found),
        )
    else:
        seconds = size.start + size.shards * each / size.capacity + size.serial_seconds
        odds = size.shard_seconds / size.mean_time_between_losses
        losses = size.shards * math.expm1(odds)
    # Nobody but the merging processes is needed while they work alone.
    core_seconds = (seconds - size.serial_seconds) * size.workers + size.lines * size.serial
    core_hours = core_seconds / 3600
    return Forecast(size, seconds, core_hours, losses, size.lines / size.rate / 3600 / core_hours)


@dataclass(frozen=True)
class Course:
    """One course that a job may take."""

    seconds: float
    losses: int


def simulate(size: JobSize, seed: int) -> Course:
    """A job, event by event; the last shard may be smaller, as in reality."""
    generator = random.Random(seed)
    losses, end = 0, 0.0
    # When each worker is free, and how slow it is: equal times are a heap.
    free = [
        (size.start, number, size.slowness if generator.random() < size.stragglers else 1.0)
        for number in range(min(size.workers, size.shards))
    ]
    for shard in range(size.shards):
        lines = min(size.shard_lines, size.lines - shard * size.shard_lines)
        now, number, slowness = free[0]
        needed = (lines / size.rate + size.overhead) * slowness
        while size.can_lose:
            survived = generator.expovariate(1 / size.mean_time_between_losses)
            if survived >= needed:
                break
            losses += 1
            now += survived + size.restart
        heapq.heapreplace(free, (now + needed, number, slowness))
        end = max(end, now + needed)
    return Course(end + size.serial_seconds, losses)


def best_shard_lines(size: JobSize) -> int:
    """The size of shards with which the job ends first; of equals, the larger one.

    Small ones pay their overhead more often. Large ones lose more with a worker, and keep the
    others waiting for the last of them.
    """
    times = {lines: forecast(replace(size, shard_lines=lines)).seconds for lines in SHARD_SIZES}
    quickest = min(times.values())
    return max(lines for lines, seconds in times.items() if seconds <= 1.01 * quickest)
