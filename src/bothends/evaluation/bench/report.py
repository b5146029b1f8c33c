"""From turns to figures: every row with its spread, its baselines by name, and its signature.

A speed-up is the median, over rounds, of the baseline's time in a round over the row's time in the
same round: what slowed a whole round down cancels. A baseline that was not in the run is not
guessed; the row then has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bothends.evaluation.bench.machine import Machine, step_bytes
from bothends.evaluation.bench.measure import Case, Measurement
from bothends.evaluation.bench.systems import Threads
from bothends.evaluation.bench.workload import RandomIds
from bothends.metrics.sums import bleu

#: The share of its time for which a thread has a processor on a machine that is quiet.
QUIET = 0.95
#: The beam of the paper's baseline.
PAPER_BEAM = 4


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return cls(median, low, high)


@dataclass(frozen=True)
class Baseline:
    """What a row is compared with, and how many times as fast the row is."""

    row: str
    speedup: Spread
    #: the same in time of processors: what is left to compare, with one thread, on a busy machine
    cpu_speedup: float


@dataclass(frozen=True)
class Floor:
    """A decoder step against the time to read its weights once, by one thread."""

    megabytes: float
    gigabytes_per_second: float
    milliseconds: float
    #: times the floor that a step takes
    ratio: float


@dataclass(frozen=True)
class Row:
    """One system at one point of the grid."""

    name: str
    family: str
    order: str
    engine: str
    precision: str
    shortlist: bool
    #: of the processor: the native engine's kernels, or what a peer is held to
    instruction_set: str | None
    batch: int
    #: 0 for a program, which has its own search
    beam: int
    threads: str
    #: milliseconds per sentence of each arrangement of threads that was tried
    threads_tried: dict[str, float]
    milliseconds: Spread  # per sentence
    #: of processors, per sentence; with one thread it is less than the above only on a busy machine
    cpu_milliseconds: float | None
    #: milliseconds of one call: at batch 1 the latency of a sentence, else of a whole batch
    latency_p50: float
    latency_p95: float
    #: None for a program, as are the steps and the time of processors
    tokens_per_second: float | None
    steps: float | None  # of the decoder, per sentence
    #: milliseconds per sentence in encoder, decoder, search and text; None for a peer
    parts: dict[str, float] | None
    step_milliseconds: float | None
    floor: Floor | None  # only for one thread
    same_beam: Baseline | None
    paper: Baseline | None
    ctranslate2: Baseline | None
    bleu: float | None
    bleu_signature: str | None
    signature: str

    @property
    def title(self) -> str:
        words = " shortlist" if self.shortlist else ""
        return f"{self.name} {self.order} {self.engine} {self.precision}{words}"


@dataclass(frozen=True)
class Report:
    """A whole run."""

    machine: Machine
    rounds: int
    notes: tuple[str, ...]
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make_report(
    measurement: Measurement, machine: Machine, rounds: int, notes: Sequence[str]
) -> Report:
    rows = [make_row(case, measurement, machine) for case in measurement.cases]
    rows.sort(key=lambda row: (row.family, row.batch, row.beam))  # what compares stands together
    notes = [*notes, *_note_on_noise(measurement)]
    return Report(machine, rounds, tuple(notes), tuple(rows))


def _note_on_noise(measurement: Measurement) -> Iterator[str]:
    """Whether others used the machine: a single thread that is let run always has a processor."""
    shares = [
        turn.cpu_per_sentence / turn.per_sentence
        for case in measurement.cases
        for turn in case.turns
        if case.threads == Threads()
    ]
    if shares and (share := float(np.median(shares))) < QUIET:
        yield (
            f"A BUSY MACHINE: a single thread had a processor for {share:.0%} of its time. "
            "Times are too long and speed-ups uncertain; measure again when it is quiet."
        )


def make_row(case: Case, measurement: Measurement, machine: Machine) -> Row:
    label = case.contestant.system.label
    calls = [1000 * call.seconds for turn in case.turns for call in turn.calls]
    parts, step = _parts(case)
    bleu, bleu_signature = _bleu(case)
    outside = case.contestant.config is None  # in a process of its own, with its own tokens
    return Row(
        name=label.name,
        family=label.family,
        order=label.order,
        engine=label.engine,
        precision=label.precision,
        shortlist=label.shortlist,
        instruction_set=label.instruction_set,
        batch=case.batch,
        beam=case.beam,
        threads=str(case.threads),
        threads_tried={str(each): 1000 * seconds for each, seconds in case.tried.items()},
        milliseconds=Spread.of([1000 * turn.per_sentence for turn in case.turns]),
        cpu_milliseconds=None if outside else 1000 * _median(case, "cpu_per_sentence"),
        latency_p50=float(np.quantile(calls, 0.5)),
        latency_p95=float(np.quantile(calls, 0.95)),
        tokens_per_second=None if outside else _median(case, "tokens_per_second"),
        steps=None if outside else _median(case, "steps_per_sentence"),
        parts=parts,
        step_milliseconds=step,
        floor=_floor(case, step, measurement),
        same_beam=_compare(case, measurement, label.engine, label.precision, case.beam),
        paper=_compare(case, measurement, label.engine, label.precision, PAPER_BEAM),
        ctranslate2=_compare(case, measurement, "ctranslate2", "int8", case.beam),
        bleu=bleu,
        bleu_signature=bleu_signature,
        signature=sign(case, machine),
    )


def _median(case: Case, name: str) -> float:
    """Of a property of turns."""
    return float(np.median([getattr(turn, name) for turn in case.turns]))


def sign(case: Case, machine: Machine) -> str:
    """All that someone needs in order to measure the same thing again."""
    label, workload = case.contestant.system.label, case.contestant.workload
    facts = {
        "data": workload.name,
        "sentences": case.turns[0].sentences,
        "order": label.order,
        "beam": case.beam,
        "batch": case.batch,
        "engine": label.engine,
        "precision": label.precision,
        "shortlist": "yes" if label.shortlist else "no",
        **({"instructions": label.instruction_set} if label.instruction_set else {}),
        "threads": case.threads,
        "rounds": len(case.turns),
        "cpu": machine.cpu,
        "cores": machine.cores,
        "flags": ",".join(machine.flags),
        "bothends": "+".join(filter(None, [machine.bothends, machine.commit])),
        **machine.packages,
        "date": machine.date,
    }
    return "|".join(f"{name}:{value}" for name, value in facts.items())


def _compare(
    case: Case, measurement: Measurement, engine: str, precision: str, beam: int
) -> Baseline | None:
    """The case against the `1x1` model of an engine at a beam, with the same batch and cores."""
    wanted = (case.contestant.system.label.family, "1x1", engine, precision)
    for other in measurement.cases:
        label = other.contestant.system.label
        if (
            (other.batch, other.cores, other.beam) == (case.batch, case.cores, beam)
            and (
                label.family,
                label.order,
                label.engine,
                label.precision,
            )
            == wanted
            and label.baseline
        ):
            pairs = list(zip(other.turns, case.turns, strict=True))
            return Baseline(
                f"{label}, beam {beam}, batch {other.batch}, threads {other.threads}",
                Spread.of([theirs.per_sentence / ours.per_sentence for theirs, ours in pairs]),
                Spread.of(
                    [theirs.cpu_per_sentence / ours.cpu_per_sentence for theirs, ours in pairs]
                ).median,
            )
    return None


def _parts(case: Case) -> tuple[dict[str, float] | None, float | None]:
    """Milliseconds per sentence in each part, and per decoder step: medians over rounds."""
    rounds = [(turn, part) for turn in case.turns if (part := turn.parts) is not None]
    if not rounds:
        return None, None
    parts = {
        name: 1000
        * float(np.median([getattr(part, name) / turn.sentences for turn, part in rounds]))
        for name in ("encoder", "decoder", "search", "text")
    }
    return parts, 1000 * float(np.median([part.decoder / part.steps for _, part in rounds]))


def _floor(case: Case, step: float | None, measurement: Measurement) -> Floor | None:
    config = case.contestant.config
    label = case.contestant.system.label
    # With a shortlist a step reads other bytes for every sentence.
    if step is None or config is None or label.shortlist or case.threads != Threads():
        return None
    size = step_bytes(config, label.precision)
    bandwidth = float(np.median(measurement.bandwidths[size]))
    floor = 1000 * size / bandwidth
    return Floor(size / 1e6, bandwidth / 1e9, floor, step / floor)


def _bleu(case: Case) -> tuple[float | None, str | None]:
    workload = case.contestant.workload
    if isinstance(workload, RandomIds) or workload.references is None:
        return None, None
    metric = bleu(workload.tokenizer)
    return metric.of(case.turns[-1].lines, workload.references), metric.signature
