"""The columns of our tables: what a line shows of its models.

`not run` is a model that was not trained, or not timed; `-` is a cell that has no meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from bothends.text.vocabulary import SpecialTokens
from model_files import Setting
from results import StoredResult, compare, load_result, load_speed, load_training_speed
from table_file import Data, PaperTable, TableRow

NOT_RUN = "not run"
NOTHING = "-"


@dataclass(frozen=True)
class Line:
    """A row of a table at one beam."""

    table: PaperTable
    row: TableRow
    beam: int

    def results(self, data: Data) -> list[StoredResult | None]:
        """Its models with this data, one for each seed."""
        return [load_result(model) for model in self.table.models_of(self.row, data)]

    def baseline(self) -> Line | None:
        """The line that it is compared with; None for that line itself.

        Of a table that does not name one, the first of the same task.
        """
        task, name = self.table.task_of(self.row).name, self.table.baseline
        first = next(
            row
            for row in self.table.rows
            if (self.table.task_of(row).name == task if name is None else row.name == name)
        )
        return replace(self, row=first) if first is not self.row else None

    def speed(self, *wanted: Data) -> dict[str, Any] | None:
        """Its row of the benchmark, one sentence at a time; that of distilled models if timed."""
        report = load_speed(self.table, self.table.task_of(self.row))
        if report is None:
            return None
        rows: dict[tuple[str, str], dict[str, Any]] = {
            (row["name"], row["order"]): row
            for row in report["rows"]
            if row["engine"] in ("native", "onnx") and (row["batch"], row["beam"]) == (1, self.beam)
        }
        kinds: tuple[Data, ...] = wanted or ("distilled", "raw")
        models = [model for data in kinds for model in self.table.models_of(self.row, data)]
        names = [str(model.run / "int8") for model in models]
        if self.table.synthetic:
            names = [self.table.synthetic.shape]
        found = (rows.get((name, str(self.row.order))) for name in names)
        return next(filter(None, found), None)


Cell = Callable[[Line], str]


def quality(
    data: Data, precision: str = "float32", dedup: bool = False, metric: str | None = None
) -> Cell:
    """A score with its interval; of several seeds, the mean and the lowest and highest, if any two
    of them were run."""

    def cell(line: Line) -> str:
        results = line.results(data)
        if not results:
            return NOTHING
        name = metric or line.table.task_of(line.row).metric
        setting = Setting(precision, line.beam, dedup)
        figures = [result.figure(name, setting) for result in results if result]
        if not figures:
            return NOT_RUN
        scores = [figure.score for figure in figures]
        digits = 2 if name in ("otem", "repetition") else 1
        if len(results) > 1:
            return _mean(scores, f".{digits}f")
        if precision != "float32" or dedup or metric:
            return f"{scores[0]:.{digits}f}"
        return f"{scores[0]:.1f} ({figures[0].low:.1f} to {figures[0].high:.1f})"

    return cell


def difference(data: Data, against: Data | None = None) -> Cell:
    """From the baseline on the same data, or on other data; of several seeds, the mean and the
    range over them."""

    def cell(line: Line) -> str:
        results, other = line.results(data), line.baseline()
        if other is None and against is not None:
            other = line
        if other is None or not results:
            return NOTHING
        setting = Setting("float32", line.beam)
        pairs = [
            compare(ours, theirs, setting)
            for ours, theirs in zip(results, other.results(against or data), strict=False)
            if ours and theirs
        ]
        if not pairs:
            return NOT_RUN
        if len(results) == 1:
            interval = pairs[0].interval
            return f"{pairs[0].difference:+.1f} ({interval.low:+.1f} to {interval.high:+.1f})"
        return _mean([each.difference for each in pairs], "+.1f")

    return cell


def _mean(values: Sequence[float], form: str) -> str:
    """Of seeds; one of them has no range."""
    if len(values) == 1:
        return f"{values[0]:{form}} (one seed)"
    return f"{mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def seeds(line: Line) -> str:
    """The score of each seed."""
    setting, metric = Setting("float32", line.beam), line.table.task_of(line.row).metric
    return ", ".join(
        f"{result.figure(metric, setting).score:.1f}" if result else NOT_RUN
        for result in line.results("raw")
    )


def perplexity(line: Line) -> str:
    results = line.results("raw")
    if not results:
        return NOTHING
    found = [result.perplexity() for result in results if result]
    if not found:
        return NOT_RUN
    return f"{found[0]:.2f}" if len(results) == 1 else _mean(found, ".2f")


def latency(line: Line) -> str:
    found = line.speed()
    return f"{found['milliseconds']['median']:.1f}" if found else NOT_RUN


def speedup(baseline: str) -> Cell:
    def cell(line: Line) -> str:
        found = line.speed()
        if not found:
            return NOT_RUN
        return f"{found[baseline]['speedup']['median']:.2f}x" if found[baseline] else NOTHING

    return cell


def speedup_per_token(line: Line) -> str:
    """Output tokens a second over those of the baseline's distilled model at the same beam.

    Distilled models write less, and less in fewer steps is no gain of the order.
    """
    found, baseline = line.speed(), (line.baseline() or line).speed()
    if not found or not baseline:
        return NOT_RUN
    return f"{found['tokens_per_second'] / baseline['tokens_per_second']:.2f}x"


def training(line: Line) -> str:
    found = load_training_speed().get(str(line.row.order), math.nan)
    return NOT_RUN if math.isnan(found) else f"{found:.2f}x"


def paper(name: str, form: str) -> Cell:
    def cell(line: Line) -> str:
        found = line.row.paper.get(line.beam)
        value = getattr(found, name) if found else None
        return NOTHING if value is None else format(value, form)

    return cell


def paper_training(line: Line) -> str:
    found = line.row.paper_training
    return NOTHING if found is None else f"{found:.2f}x"


def layers(line: Line) -> str:
    """Of the decoder."""
    models = line.table.models_of(line.row, "raw") + line.table.models_of(line.row, "distilled")
    any_words = 100
    config = models[0].recipe().model.config(any_words, any_words, SpecialTokens())
    return str(config.decoder_layers)


COLUMNS: dict[str, tuple[str, Cell]] = {
    "task": ("task", lambda line: line.table.task_of(line.row).name),
    "order": ("order", lambda line: f"`{line.row.order}`"),
    "beam": ("beam", lambda line: str(line.beam)),
    "layers": ("decoder layers", layers),
    "raw": ("{metric} (95 %)", quality("raw")),
    "distilled": ("distilled (95 %)", quality("distilled")),
    "raw_int8": ("int8", quality("raw", "int8")),
    "distilled_int8": ("distilled, int8", quality("distilled", "int8")),
    "raw_dedup": ("dedup", quality("raw", dedup=True)),
    "distilled_dedup": ("distilled, dedup", quality("distilled", dedup=True)),
    "raw_difference": ("difference", difference("raw")),
    "distilled_difference": ("difference, distilled", difference("distilled")),
    "distilled_from_raw": ("distilled, from the raw baseline", difference("distilled", "raw")),
    "seeds": ("each seed", seeds),
    "seeds_mean": ("{metric}, mean (lowest to highest)", quality("raw")),
    "seeds_difference": ("difference, seed by seed (lowest to highest)", difference("raw")),
    "chrf": ("chrF", quality("raw", metric="chrf")),
    "otem": ("OTEM", quality("raw", metric="otem")),
    "otem_dedup": ("OTEM, dedup", quality("raw", dedup=True, metric="otem")),
    "distilled_otem": ("OTEM, distilled", quality("distilled", metric="otem")),
    "distilled_otem_dedup": (
        "OTEM, distilled, dedup",
        quality("distilled", dedup=True, metric="otem"),
    ),
    "repetition": ("repetition %", quality("raw", metric="repetition")),
    "perplexity": ("perplexity", perplexity),
    "latency": ("ms", latency),
    "speedup": ("speed-up", speedup("paper")),
    "speedup_same_beam": ("at the same beam", speedup("same_beam")),
    "speedup_greedy": (
        "speed-up, greedy",
        lambda line: speedup("same_beam")(replace(line, beam=1)),
    ),
    "speedup_per_token": ("per token, distilled", speedup_per_token),
    "ctranslate2": ("against CTranslate2", speedup("ctranslate2")),
    "training": ("training speed", training),
    "paper_raw": ("paper", paper("raw", ".1f")),
    "paper_distilled": ("paper, distilled", paper("distilled", ".1f")),
    "paper_latency": ("paper, ms", paper("latency", ".0f")),
    "paper_speedup": ("paper, speed-up", paper("speedup", ".2f")),
    "paper_training": ("paper, training", paper_training),
}
