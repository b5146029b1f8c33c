"""The measuring frame: who translates, when, and how the clock is read.

Machines drift: they heat up, and other programs come and go. So no system is measured after
another: in every round each takes a turn, in an order shuffled afresh, and two systems are compared
round by round. A turn begins with a sentence that is not timed, which brings the system's own
weights back into the caches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from time import perf_counter, process_time, sleep

from bothends.errors import UsageError
from bothends.evaluation.bench.machine import Bandwidth, step_bytes
from bothends.evaluation.bench.systems import Parts, Threads, TimedOutcome, TimedSystem
from bothends.evaluation.bench.workload import Workload
from bothends.jobs.processes import available_cores
from bothends.model.config import ModelConfig

#: Seconds after a turn on several cores. Thread pools spin for a while after their last product,
#: in case there is another; OpenMP does so for 0.2 s, and would take a core from whoever is next.
PAUSE = 0.25
#: Calls by which each arrangement of threads is tried before the rounds; the best one counts.
TRIALS = 2


@dataclass(frozen=True)
class Plan:
    """The grid of a benchmark."""

    batches: tuple[int, ...] = (1,)
    beams: tuple[int, ...] = (1,)
    #: cores for a system; None is one for a single sentence, and all of them for a batch
    threads: tuple[int | None, ...] = (None,)
    rounds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class Contestant:
    """A system, what it translates, and the shape of its network, if that is known."""

    system: TimedSystem
    workload: Workload
    config: ModelConfig | None


@dataclass(frozen=True)
class Call:
    """One batch, from ids to ids or from text to text."""

    seconds: float
    cpu_seconds: float  # of all threads of this process
    outcome: TimedOutcome
    lines: list[str]
    tokens: int  # end symbols among them
    parts: Parts | None


@dataclass(frozen=True)
class Turn:
    """What a case did in one round."""

    calls: tuple[Call, ...]

    @property
    def sentences(self) -> int:
        return sum(len(call.outcome.tokens) for call in self.calls)

    @property
    def per_sentence(self) -> float:
        """Seconds."""
        return sum(call.seconds for call in self.calls) / self.sentences

    @property
    def cpu_per_sentence(self) -> float:
        """Seconds of processors."""
        return sum(call.cpu_seconds for call in self.calls) / self.sentences

    @property
    def tokens_per_second(self) -> float:
        return sum(call.tokens for call in self.calls) / sum(call.seconds for call in self.calls)

    @property
    def steps_per_sentence(self) -> float:
        return sum(sum(call.outcome.steps) for call in self.calls) / self.sentences

    @property
    def parts(self) -> Parts | None:
        """Of all calls together, where the system lets us look inside."""
        total = Parts()
        for call in self.calls:
            if call.parts is None:
                return None
            total += call.parts
        return total

    @property
    def lines(self) -> list[str]:
        return [line for call in self.calls for line in call.lines]


@dataclass
class Case:
    """A contestant at one point of the grid, and what was measured there."""

    contestant: Contestant
    batch: int
    #: 0 for a program, which has its own search
    beam: int
    cores: int
    threads: Threads = field(default_factory=Threads)
    #: seconds per sentence of each arrangement of threads that was tried
    tried: dict[Threads, float] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)


@dataclass
class Measurement:
    """All cases, round by round, and the bandwidth in the same rounds."""

    cases: list[Case]
    #: bytes of a step's weights, to bytes per second in each round
    bandwidths: dict[int, list[float]]


def measure(
    contestants: Sequence[Contestant], plan: Plan, tell: Callable[[str], None]
) -> Measurement:
    """Run the whole grid. `tell` receives the progress."""
    plan = replace(plan, batches=tuple(_possible_batches(contestants, plan.batches, tell)))
    cases = [case for contestant in contestants for case in _cases(contestant, plan)]
    tell(f"warming up: {len(contestants)} systems, {len(cases)} cases")
    for case in cases:
        choose_threads(case)
    sizes = {
        step_bytes(each.config, each.system.label.precision) for each in contestants if each.config
    }
    readers = [Bandwidth(size) for size in sorted(sizes)]
    measurement = Measurement(cases, {reader.size: [] for reader in readers})
    shuffle = random.Random(plan.seed).shuffle
    for number in range(plan.rounds):
        tell(f"round {number + 1} of {plan.rounds}")
        for reader in readers:
            measurement.bandwidths[reader.size].append(reader.sample())
        for case in turn_order(cases, shuffle):
            case.turns.append(take_turn(case))
    return measurement


def _possible_batches(
    contestants: Sequence[Contestant], batches: Sequence[int], tell: Callable[[str], None]
) -> list[int]:
    """The sizes of batches that every workload can fill; those left out are reported."""
    possible, problem = [], None
    for batch in batches:
        try:
            for contestant in contestants:
                contestant.workload.batches(batch)
        except UsageError as error:
            problem = error
            tell(f"{error}: batch {batch} is left out")
        else:
            possible.append(batch)
    if not possible and problem is not None:
        raise problem
    return possible


def turn_order(cases: Sequence[Case], shuffle: Callable[[list[list[Case]]], None]) -> list[Case]:
    """One round: cases of one batch size stay together, near in time to what they compare with."""
    by_batch = [list(group) for _, group in groupby(sorted(cases, key=_batch), key=_batch)]
    for group in by_batch:
        shuffle(group)  # type: ignore[arg-type]
    shuffle(by_batch)
    return [case for group in by_batch for case in group]


def choose_threads(case: Case) -> None:
    """Warm a case up, and give it the arrangement of threads that suits it best."""
    possible = [
        threads
        for threads in case.contestant.system.arrangements(case.cores)
        if threads.workers <= case.batch
    ]
    first = case.contestant.workload.batches(case.batch)[0]
    best = dict.fromkeys(possible, float("inf"))
    for _, threads in product(range(TRIALS), possible):
        warm_up(case, threads)
        call = translate(case.contestant, first, case.beam, threads)
        best[threads] = min(best[threads], call.seconds / case.batch)
        if case.cores > 1:
            sleep(PAUSE)
    case.tried = best
    case.threads = min(best, key=lambda threads: best[threads])


def warm_up(case: Case, threads: Threads) -> None:
    """A sentence for each worker, not timed."""
    translate(case.contestant, slice(0, threads.workers), case.beam, threads)


def take_turn(case: Case) -> Turn:
    """Translate the whole workload, batch by batch, after a sentence that does not count."""
    warm_up(case, case.threads)
    turn = Turn(
        tuple(
            translate(case.contestant, batch, case.beam, case.threads)
            for batch in case.contestant.workload.batches(case.batch)
        )
    )
    if case.cores > 1:
        sleep(PAUSE)
    return turn


def translate(contestant: Contestant, batch: slice, beam: int, threads: Threads) -> Call:
    """One timed call."""
    system, workload = contestant.system, contestant.workload
    cpu_started, started = process_time(), perf_counter()
    sources = workload.read(batch)
    request = workload.request(sources, beam)
    read = perf_counter()
    outcome = system.translate(sources, request, threads)
    translated = perf_counter()
    lines = workload.write(outcome)
    written, cpu_seconds = perf_counter(), process_time() - cpu_started
    text = Parts(text=(read - started) + (written - translated))
    parts = None if outcome.parts is None else outcome.parts + text
    # The end symbol is a token that takes its time, whether it was reached or cut off.
    tokens = sum(min(len(each), request.max_length) + 1 for each in outcome.tokens)
    return Call(written - started, cpu_seconds, outcome, lines, tokens, parts)


def _cases(contestant: Contestant, plan: Plan) -> Iterator[Case]:
    """The points of the grid that make a difference to a system."""
    if contestant.config is None:
        yield from (Case(contestant, batch, 0, _cores(None, batch)) for batch in plan.batches)
        return
    for batch, beam, threads in product(plan.batches, plan.beams, plan.threads):
        yield Case(contestant, batch, beam, _cores(threads, batch))


def _cores(threads: int | None, batch: int) -> int:
    if threads is not None:
        return threads
    return 1 if batch == 1 else available_cores()


def _batch(case: Case) -> int:
    return case.batch
