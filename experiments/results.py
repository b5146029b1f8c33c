"""What the runs have stored, read back: figures, translations, forced scores, times."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bothends.evaluation.evaluate import System, evaluate
from bothends.evaluation.metrics import choose_metrics
from bothends.evaluation.significance import Comparison
from bothends.scoring import ForcedScore
from speed import report_of
from steps import RESULT, Setting, is_done
from table_file import RUNS, Model, Table, Task


@dataclass(frozen=True)
class Figure:
    """A metric of one model, with its 95% interval."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """A finished model."""

    model: Model
    content: dict[str, Any]

    # Its content is no value to hash; two results of one model are the same.
    def __hash__(self) -> int:
        return hash(self.model)

    def figure(self, metric: str, setting: Setting) -> Figure:
        for found in self.content["evaluations"]:
            if all(found[name] == getattr(setting, name) for name in _SETTING):
                each = found["metrics"][metric]
                return Figure(each["score"], each["interval"]["low"], each["interval"]["high"])
        raise KeyError(f"{self.model.name} has no {setting.name}")

    def lines(self, setting: Setting) -> list[str]:
        """Its translations of the test set."""
        return read_text(self.model.run / "test" / f"{setting.name}.txt")

    def forced_scores(self) -> list[ForcedScore]:
        """Of the references."""
        records = map(json.loads, read_text(self.model.run / "test" / "scores.jsonl"))
        return [ForcedScore(each["token_logprobs"], each["end_logprob"]) for each in records]

    def signatures(self) -> list[str]:
        """How its figures were computed, one line each."""
        first = self.content["evaluations"][0]
        return [each["signature"] for each in first["metrics"].values()]


_SETTING = ("precision", "beam", "deduplicated")


@cache
def load_result(model: Model) -> Result | None:
    """The stored figures of a model; None if it was not run."""
    if not is_done(model):
        return None
    return Result(model, json.loads((model.run / RESULT).read_bytes()))


@cache
def compare(result: Result, baseline: Result, setting: Setting) -> Comparison:
    """The difference of two models in the metric of their task, by a paired bootstrap."""
    task = result.model.task
    references = read_text(task.file("test", "target"))
    systems = [System(each.model.name, "", each.lines(setting)) for each in (baseline, result)]
    (metric,) = choose_metrics(task.metric, task.tokenizer)
    found = evaluate(systems, "", references, [metric]).results[1].figures[metric.name].against
    assert found is not None, "only the first system is compared with none"
    return found


def load_speed(table: Table, task: Task) -> dict[str, Any] | None:
    """The benchmark of a table's models on a task, if there was one."""
    return _read_json(report_of(table, task))


def load_training_speed() -> dict[str, float]:
    """Target tokens a second by order, over those of 1x1, if they were measured."""
    found = _read_json(RUNS / "speed" / "training.json") or {}
    return {"1x1": 1.0, **found["orders_over_1x1"]} if found else {}


def read_text(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _read_json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_bytes()) if path.exists() else None
