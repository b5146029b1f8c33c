"""Tables as data: which models a table compares, and where each of them is kept.

    experiments/tasks/TASK.yaml     a recipe, its text, the metrics of its test set
    experiments/tables/TABLE.yaml   rows: an order and what else differs from the recipe

A model is named after all that makes it: recipe, order, data, changed settings, seed. So a model
that stands in several tables is trained once, and a run of `bothends train RECIPE order=2x1` is one
of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from bothends.errors import BothendsError, UsageError, nearest
from bothends.storage.schemas import Strict, first_problem
from bothends.training.recipe import Order, Recipe
from bothends.training.recipe_file import load_recipe

TABLES = Path("experiments/tables")
RUNS = Path("runs")
DATA = RUNS / "data"
#: The environment variable that names the folder of text.
DATA_VARIABLE = "BOTHENDS_DATA"

Data = Literal["raw", "distilled"]
Analysis = Literal["pmi", "grid", "lengths", "agreement"]


class AgreementPairs(Strict):
    """A contrastive test set, below the folder of text."""

    source: str
    correct: str
    incorrect: str


class ExperimentTask(Strict):
    """A task: its text and its metrics. Text is `$BOTHENDS_DATA/TEXT/SPLIT.SIDE`."""

    name: str
    recipe: Path
    text: str
    source: str
    target: str
    #: the command that prepares the corpus of the recipe
    prepare: tuple[str, ...]
    #: options of `bothends prepare` for what a teacher wrote
    prepare_distilled: tuple[str, ...] = ()
    #: what differs from the recipe, by dotted keys, for a model that begins with trained weights
    continued: dict[str, Any] = Field(default_factory=dict)
    #: the metric that stands for quality in tables, and all that are computed
    metric: str = "bleu"
    metrics: str = "bleu,chrf,otem,repetition,length"
    tokenizer: str = "13a"
    agreement: AgreementPairs | None = None

    def file(self, split: str, side: Literal["source", "target"]) -> Path:
        """A file of text."""
        return text_folder() / self.text / f"{split}.{getattr(self, side)}"


class Paper(Strict):
    """What the paper reports in the place of a row, at one beam."""

    raw: float | None = None
    distilled: float | None = None
    latency: float | None = None
    speedup: float | None = None


class SyntheticShape(Strict):
    """Random weights and forced lengths, to time orders by, in place of trained models."""

    #: a preset of `bothends bench --synthetic`
    shape: str
    source_length: int
    target_length: int


class TableRow(Strict):
    """A line of a table: one to several trainings."""

    name: str
    order: Order
    #: else the table's
    task: ExperimentTask | None = None
    data: tuple[Data, ...] | None = None
    #: what differs from the recipe, by dotted keys
    settings: dict[str, Any] = Field(default_factory=dict)
    seeds: tuple[int, ...] = (1,)
    #: the order of the raw model whose weights it begins with; else the table's, or random ones
    init: Order | None = None
    #: or another row of the table, whose models of the same data and seed it begins with
    continues: str | None = None
    #: spliced lines (`bothends splice`) that the teacher translates besides the training text
    spliced: int = Field(default=0, ge=0)
    #: by beam
    paper: dict[int, Paper] = Field(default_factory=dict)
    paper_training: float | None = None


class PaperTable(Strict):
    """Rows, and the columns that `tables.py` shows of them."""

    name: str
    title: str
    #: lines of text below the table
    note: str = ""
    task: ExperimentTask | None = None
    data: tuple[Data, ...] = ("raw",)
    #: the order of the raw model whose weights distilled models begin with; else random ones
    init: Order | None = None
    beams: tuple[int, ...] = (4,)
    columns: tuple[str, ...] = Field(min_length=1)
    #: name of the row that differences are taken from
    baseline: str | None = None
    #: what stands for the speed of its orders; else that of its models on the text of the task
    synthetic: SyntheticShape | None = None
    #: what `tables.py` shows below the table
    analyses: tuple[Analysis, ...] = ()
    figure: Literal["speed", "bars", "tokens"] | None = None
    rows: tuple[TableRow, ...] = Field(min_length=1)

    def task_of(self, row: TableRow) -> ExperimentTask:
        task = row.task or self.task
        assert task is not None, "checked when the table was read"
        return task

    def models_of(self, row: TableRow, data: Data) -> list[Model]:
        """The trainings of a row on this data, one for each seed; none if it has no such data."""
        if data not in (row.data or self.data):
            return []
        task, order = self.task_of(row), str(row.order)
        settings = _overrides(row.settings)
        spliced = row.spliced if data == "distilled" else 0
        return [
            Model(task, order, data, settings, seed, self._start(row, data, seed), spliced)
            for seed in row.seeds
        ]

    def _start(self, row: TableRow, data: Data, seed: int) -> Model | None:
        """The model whose weights this one begins with, if they are not random."""
        if row.continues is not None:
            earlier = next(each for each in self.rows if each.name == row.continues)
            for model in self.models_of(earlier, data):
                if model.seed == seed:
                    return model
            raise UsageError(
                f"{self.name}: row {row.name!r}: continues: {row.continues!r} has no seed {seed} "
                f"with {data} data"
            )
        init = row.init or (self.init if data == "distilled" else None)
        return None if init is None else Model(self.task_of(row), str(init))

    def models(self, names: Iterable[str] = ()) -> list[Model]:
        """All trainings, or those of the rows that are named; raw ones, as teachers are, first."""
        wanted = set(names)
        known = {row.name for row in self.rows}
        for name in wanted - known:
            raise UsageError(f"{self.name}: has no row {name!r}; {nearest(name, known)}")
        rows = [row for row in self.rows if not wanted or row.name in wanted]
        kinds: tuple[Data, ...] = ("raw", "distilled")
        found = [model for data in kinds for row in rows for model in self.models_of(row, data)]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Model:
    """One training, and where it is kept."""

    task: ExperimentTask
    order: str
    data: Data = "raw"
    settings: tuple[str, ...] = ()
    seed: int = 1
    #: whose averaged weights it begins with
    init: Model | None = None
    spliced: int = 0

    # A task is no value to hash; all the rest follows from the name.
    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name(self) -> str:
        return f"{self.task.recipe.stem}-{self.differences}"

    @property
    def differences(self) -> str:
        """What tells it from the other models of its task."""
        parts = [self.order]
        if self.data != "raw":
            parts.append(self.data)
        if self.spliced:
            parts.append(f"spliced-{self.spliced}")
        for setting in self.settings:
            key, _, value = setting.partition("=")
            parts.append(f"{key.rpartition('.')[2].replace('_', '-')}-{value}")
        if self.init is not None:
            parts.append(f"from-{self.init.short_name}")
        if self.seed != 1:
            parts.append(f"seed-{self.seed}")
        return "-".join(parts)

    @property
    def short_name(self) -> str:
        """Its order and a digest of what else it is made of: names would grow with each start."""
        if self.differences == self.order:
            return self.order
        return f"{self.order}-{hashlib.sha256(self.differences.encode()).hexdigest()[:8]}"

    @property
    def run(self) -> Path:
        """Its run directory."""
        return RUNS / self.name

    @property
    def corpus(self) -> Path:
        """The prepared corpus that it learns from."""
        path = self.raw_corpus
        if self.data == "raw":
            return path
        spliced = f"-spliced-{self.spliced}" if self.spliced else ""
        return path.with_name(f"{path.name}-{self.data}{spliced}")

    @property
    def raw_corpus(self) -> Path:
        return load_recipe(self.task.recipe).data.prepared[0].path

    @property
    def teacher(self) -> Model:
        """Whose translations it learns from if it is distilled: the plain Transformer."""
        return Model(self.task, "1x1")

    def overrides(self) -> list[str]:
        """What `bothends train RECIPE` has to be told."""
        changes = [f"order={self.order}", f"run={self.run}"]
        if self.init is not None:
            changes.append(f"init={self.init.run / 'averaged'}")
            changes += _overrides(self.task.continued)
        changes += self.settings
        if self.data != "raw":
            changes.append(f"data.prepared={self.corpus}")
        if self.seed != 1:
            changes.append(f"seed={self.seed}")
        return changes

    def recipe(self) -> Recipe:
        return load_recipe(self.task.recipe, self.overrides())


def load_tables(names: Sequence[str]) -> list[PaperTable]:
    """Tables by name or path; without names all of them, in the order of their names."""
    if not names:
        return [load_table(path) for path in sorted(TABLES.glob("*.yaml"))]
    return [load_table(_find(name)) for name in names]


def load_table(path: Path) -> PaperTable:
    """Read a table; its tasks are in the folder `tasks` next to its own."""
    tasks = path.parent.parent / "tasks"

    def with_task(content: dict[str, Any]) -> dict[str, Any]:
        task = content.get("task")
        return content if task is None else {**content, "task": load_task(tasks / f"{task}.yaml")}

    content = with_task(_read(path))
    rows = content.get("rows")
    if isinstance(rows, list):
        content["rows"] = [with_task(row) if isinstance(row, dict) else row for row in rows]
    try:
        table = PaperTable.model_validate({"name": path.stem, **content})
    except ValidationError as error:
        raise UsageError(f"{path}: {first_problem(error)}") from None
    names = [row.name for row in table.rows]
    for name in (name for name in names if names.count(name) > 1):
        raise UsageError(f"{path}: two rows are named {name!r}")
    if table.baseline is not None and table.baseline not in names:
        raise UsageError(
            f"{path}: baseline: no row {table.baseline!r}; {nearest(table.baseline, names)}"
        )
    for place, row in enumerate(table.rows):
        if row.task is None and table.task is None:
            raise UsageError(f"{path}: row {row.name!r} has no task, and neither has the table")
        _check_start(path, row, names[:place])
    for model in table.models():
        model.recipe()  # a misspelled setting is an error now, and not after hours of training
    return table


def _check_start(path: Path, row: TableRow, earlier: Sequence[str]) -> None:
    if row.continues is None:
        return
    where = f"{path}: row {row.name!r}: continues"
    if row.init is not None:
        raise UsageError(f"{where}: a model begins once; leave out `init`")
    if row.continues not in earlier:
        raise UsageError(
            f"{where}: no row {row.continues!r} above it; {nearest(row.continues, earlier)}"
        )


def tasks_of(table: PaperTable) -> list[ExperimentTask]:
    """The tasks of its rows, each once."""
    return list({table.task_of(row).name: table.task_of(row) for row in table.rows}.values())


def load_task(path: Path) -> ExperimentTask:
    try:
        return ExperimentTask.model_validate({"name": path.stem, **_read(path)})
    except ValidationError as error:
        raise UsageError(f"{path}: {first_problem(error)}") from None


def text_folder() -> Path:
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise BothendsError(
            f"set {DATA_VARIABLE} to the folder of text: it holds multi30k/train.en"
        )
    return Path(folder)


def _find(name: str) -> Path:
    """`main` is `experiments/tables/1-main.yaml`; a path is itself."""
    if name.endswith(".yaml"):
        return Path(name)
    known = {path.stem.partition("-")[2]: path for path in sorted(TABLES.glob("*.yaml"))}
    known |= {path.stem: path for path in known.values()}
    if name not in known:
        raise UsageError(f"no table {name!r}; {nearest(name, known)}")
    return known[name]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected keys and values, as in `title: ...`")
    return content


def _overrides(settings: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}={_spell(value)}" for key, value in settings.items())


def _spell(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
