"""The speed of a table's finished models, measured together: `bothends bench`, in turns.

Times of different runs do not compare, so there is one measurement for each table and task, in
`runs/speed/`, made when the machine is quiet; and not one for each model, when it was trained.
Single sentences are timed on one core, where no thread finds a core that fell asleep
(docs/bench.md), and batches on all of them; so the two are processes of their own, and one report.
CTranslate2 takes part where it is installed, with the weights of the first 1x1 model. A table may
ask for random weights and forced lengths instead, which need no model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from bothends.errors import BothendsError
from bothends.model.directory import WEIGHTS
from jobs import ExperimentJob, RunningProcesses, Shell, run_jobs
from steps import is_done
from table_file import RUNS, ExperimentTask, Model, PaperTable, SyntheticShape, tasks_of

SPEED = RUNS / "speed"
BATCHES, BEAMS = (1, 32), "1,4"


def measure_speed(
    tables: Sequence[PaperTable], rounds: int, processes: RunningProcesses
) -> dict[str, str]:
    """Measure all tables, one after the other; what failed, and why."""
    jobs = jobs_of(tables, rounds)
    if not jobs:
        raise BothendsError(
            "nothing to time: no table has its 1x1 model and another one finished; --list says "
            "which are"
        )
    return run_jobs(jobs, 1, processes)


def jobs_of(tables: Sequence[PaperTable], rounds: int) -> list[ExperimentJob]:
    """A measurement for each table and task whose models are finished, or that needs none."""
    jobs = []
    for table in tables:
        for task in tasks_of(table):
            if table.synthetic:
                jobs.append(_bench_synthetic(table, table.synthetic, task, rounds))
                continue
            timed = timed_models(table, task)
            models = [model for model in timed if is_done(model)]
            plain = next((model for model in timed if model.order == "1x1"), None)
            # Speed-ups are against the table's plain Transformer, and no other in its place.
            if plain in models and len(models) > 1:
                jobs.append(_bench(table, task, models, rounds))
                if "lengths" in table.analyses:
                    jobs.append(_lengths(table, task, models))
    return jobs


def timed_models(table: PaperTable, task: ExperimentTask) -> list[Model]:
    """Speed does not depend on the seed: one model for each row and data."""
    return [model for model in table.models() if model.task.name == task.name and model.seed == 1]


def report_of(table: PaperTable, task: ExperimentTask) -> Path:
    return SPEED / f"{table.name}-{task.name}.json"


def lengths_of(table: PaperTable, task: ExperimentTask) -> Path:
    return SPEED / f"{table.name}-{task.name}-lengths.json"


def _bench(
    table: PaperTable, task: ExperimentTask, models: Sequence[Model], rounds: int
) -> ExperimentJob:
    def what() -> list[object]:
        for model in models:
            _lend_weights(model)
        directories = (model.run / "int8" for model in models)
        return ["--model", *directories, "--source", task.file("test", "source")]

    return _job(report_of(table, task), f"{len(models)} models", what, rounds)


def _bench_synthetic(
    table: PaperTable, synthetic: SyntheticShape, task: ExperimentTask, rounds: int
) -> ExperimentJob:
    orders = list(dict.fromkeys(str(row.order) for row in table.rows))

    def what() -> list[object]:
        return [
            "--synthetic", f"{synthetic.shape}:{','.join(orders)}",
            "--source-length", synthetic.source_length,
            "--target-length", synthetic.target_length,
        ]  # fmt: skip

    return _job(report_of(table, task), f"{len(orders)} orders, random weights", what, rounds)


def _job(
    target: Path, contestants: str, what: Callable[[], list[object]], rounds: int
) -> ExperimentJob:
    def bench(shell: Shell) -> None:
        shell.say(f"{contestants}, {rounds} rounds")
        partial, contest, reports = target.with_name(f".{target.name}.partial"), what(), []
        for batch in BATCHES:
            with on_one_core() if batch == 1 else nullcontext():
                shell.bothends(
                    "bench", *contest,
                    "--batch", batch, "--beam", BEAMS, "--repeat", rounds, "--json", partial,
                )  # fmt: skip
            reports.append(json.loads(partial.read_bytes()))
        partial.write_text(json.dumps(merge(reports)) + "\n", encoding="utf-8")
        os.replace(partial, target)

    return ExperimentJob(target.stem, target, bench)


def merge(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One report of several; the cores that a part had are in the signatures of its rows."""
    return {
        **reports[-1],
        "notes": list(dict.fromkeys(note for each in reports for note in each["notes"])),
        "rows": [row for each in reports for row in each["rows"]],
    }


@contextmanager
def on_one_core() -> Iterator[None]:
    """Processes that this thread starts meanwhile have one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _lend_weights(model: Model) -> None:
    """Put the weights beside the graphs, which do without them, for CTranslate2 to load."""
    lent = model.run / "int8" / WEIGHTS
    if model.order == "1x1" and not lent.exists():
        os.link(model.run / "averaged" / WEIGHTS, lent)


def _lengths(table: PaperTable, task: ExperimentTask, models: Sequence[Model]) -> ExperimentJob:
    """Quality and speed by length, as in the paper: distilled models, where there are any, against
    the plain Transformer that learned from references."""
    target = lengths_of(table, task)
    chosen = {model.order: model for model in models if model.order != "1x1" or model.data == "raw"}
    shown = list(chosen.values())  # of raw and distilled, the latter come later

    def measure(shell: Shell) -> None:
        shell.say(f"{len(shown)} models")
        partial = target.with_name(f".{target.name}.partial")
        picture = target.with_suffix(".svg")
        with on_one_core():  # sentences are timed one by one
            shell.bothends(
                "analyse", "lengths", "--model", *(model.run / "int8" for model in shown),
                "--source", task.file("test", "source"), "--reference", task.file("test", "target"),
                "--metric", task.metric, "--tokenizer", task.tokenizer,
                "--json", partial, "--picture", picture,
            )  # fmt: skip
        os.replace(partial, target)

    return ExperimentJob(target.stem, target, measure)
