"""What the runs have stored, read back: figures, translations, scores, times.

Runs are large and stay where they were made. The few files that tables are made from are kept next
to the tables, as `experiments/results/NAME/result.json` for `runs/NAME/result.json`. So anyone can
make the tables again, and compare a model with ours, without training ours.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bothends.errors import BothendsError
from bothends.evaluation.analyses.pmi import ScoredModel
from bothends.evaluation.evaluate import System, evaluate
from bothends.metrics.named import choose_metrics
from bothends.metrics.significance import Comparison
from bothends.order import GenerationOrder
from bothends.text.pairs import read_lines
from bothends.training.recipe import Recipe
from bothends.training.run import differences
from model_files import SETTINGS, Setting, agreement_of
from result_file import (
    RESULT,
    read_references,
    read_summary,
    read_translations,
    result_files,
)
from speed import lengths_of, report_of, timed_models
from steps import is_done
from table_file import RUNS, ExperimentTask, Model, PaperTable, tasks_of

KEPT = Path("experiments/results")
TRAINING_SPEED = RUNS / "speed" / "training.json"


@dataclass(frozen=True)
class StoredFigure:
    """A metric of one model, with its 95% interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class StoredResult:
    """A finished model."""

    model: Model
    directory: Path
    #: the summary of `result_file.py`
    content: dict[str, Any]

    # Its content is no value to hash; two results of one model are the same.
    def __hash__(self) -> int:
        return hash(self.model)

    def figure(self, metric: str, setting: Setting) -> StoredFigure:
        for found in self.content["evaluations"]:
            each = found["metrics"].get(metric)
            if each and all(found[name] == getattr(setting, name) for name in _SETTING):
                return StoredFigure(
                    each["score"], each["interval"]["low"], each["interval"]["high"]
                )
        judged = ", ".join(each.name for each in SETTINGS)
        raise BothendsError(
            f"{self.model.name}: no {metric} of {setting.name}; models are judged as {judged}, "
            "with the metrics of their task"
        )

    def lines(self, setting: Setting) -> list[str]:
        """Its translations of the test set."""
        return read_translations(self.directory, setting.name)

    def perplexity(self) -> float:
        """Of the references, per symbol."""
        logprob, symbols = self.scored().statistics.sum(axis=0)
        return math.exp(-logprob / symbols)

    def scored(self) -> ScoredModel:
        """How probable it finds the references."""
        order = self.model.order
        statistics = np.array(read_references(self.directory), np.float64)
        return ScoredModel(order, GenerationOrder.parse(order), statistics)

    def signatures(self) -> list[str]:
        """How its figures were computed, one line each."""
        return list(self.content["signatures"].values())


_SETTING = ("precision", "beam", "deduplicated")


@cache
def load_result(model: Model) -> StoredResult | None:
    """The stored figures of a model; None if it was not run."""
    if is_done(model):
        return StoredResult(model, model.run, read_summary(model.run))
    directory = kept(model.run)
    if not (directory / RESULT).exists():
        return None
    content = read_summary(directory)
    recipe, limit = Recipe.model_validate(content["recipe"]), model.recipe().training.updates
    # What was kept may be of a recipe that is not the row's any more.
    if any(differences(recipe, model.recipe())) or content["training"]["updates"] != limit:
        return None
    return StoredResult(model, directory, content)


def load_agreement(model: Model) -> dict[str, Any] | None:
    """Accuracy on contrastive pairs, if it was measured."""
    return _measured(agreement_of(model), [model]) if load_result(model) else None


@cache
def compare(result: StoredResult, baseline: StoredResult, setting: Setting) -> Comparison:
    """The difference of two models in the metric of their task, by a paired bootstrap."""
    task, both = result.model.task, (baseline, result)
    stored = [each.figure(task.metric, setting).score for each in both]
    source, target = task.file("test", "source"), task.file("test", "target")
    sources, references = list(read_lines(source)), list(read_lines(target))
    if len({len(sources), len(references), *(len(each.lines(setting)) for each in both)}) > 1:
        raise BothendsError(f"{target}: {len(references)} lines, {result.model.name} wrote others")
    systems = [System(each.model.name, "", each.lines(setting)) for each in both]
    (metric,) = choose_metrics(task.metric, task.tokenizer)
    evaluation = evaluate(systems, "", references, [metric], sources=sources)
    figures = [found.figures[metric.name] for found in evaluation.results]
    for each, figure, before in zip(both, figures, stored, strict=True):
        if not math.isclose(figure.score, before, abs_tol=1e-6):
            raise BothendsError(
                f"{target}: {metric.title} of {each.model.name} is {figure.score:.2f}, but was "
                f"{before:.2f} when it was judged: these are other references, or words"
            )
    assert figures[1].against is not None, "only the first system is compared with none"
    return figures[1].against


def load_speed(table: PaperTable, task: ExperimentTask) -> dict[str, Any] | None:
    """The benchmark of a table's models on a task, if there was one."""
    timed = [] if table.synthetic else timed_models(table, task)
    return _measured(report_of(table, task), timed)


def load_lengths(table: PaperTable, task: ExperimentTask) -> dict[str, Any] | None:
    """Quality and speed by length, if they were measured."""
    return _measured(lengths_of(table, task), timed_models(table, task))


def load_training_speed() -> dict[str, float]:
    """Target tokens a second by order, over those of 1x1, if they were measured."""
    found = _measured(TRAINING_SPEED, []) or {}
    return {"1x1": 1.0, **found["orders_over_1x1"]} if found else {}


def _measured(path: Path, models: Sequence[Model]) -> dict[str, Any] | None:
    """What the runs have measured of these models, or what was kept of it.

    That is of other weights, and not shown, as soon as one of the models was trained here.
    """
    if not path.exists():
        path = kept(path)
        if not path.exists() or any(map(is_done, models)):
            return None
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def kept(path: Path) -> Path:
    """Where a file of the runs is kept."""
    return KEPT / path.relative_to(RUNS)


def keep(tables: Sequence[PaperTable]) -> None:
    """Keep what tables are made from, as far as it is in the runs."""
    for path in _sources(tables):
        if path.exists():
            kept(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, kept(path))


def _sources(tables: Sequence[PaperTable]) -> Iterator[Path]:
    yield TRAINING_SPEED
    for table in tables:
        for model in filter(is_done, table.models()):
            yield from result_files(model.run)
            yield agreement_of(model)
        for task in tasks_of(table):
            yield report_of(table, task)
            yield lengths_of(table, task)
