"""A model of a table on disk: its files, and the stages that make each from another.

runs/NAME/                    the run directory of `bothends train`
    averaged/                 the average of its last checkpoints
    float32/, int8/           exported models
    test/float32-beam4.txt    translations of the test set, and .json: their scores
    test/scores.jsonl         forced scores of the references
    agreement.json            accuracy on contrastive pairs, where a table shows it
    result.json               all figures, each with its signature, and what they come from;
                              translations and scores are beside it (`result_file.py`)
    stages/                   a record of each of these: settings, and digests of its inputs
runs/data/stages/             records of the prepared corpora
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bothends.jobs.digests import file_digest
from bothends.jobs.stages import Stage
from bothends.model.directory import CONFIG
from table_file import DATA, Model

#: Checkpoints that are averaged.
AVERAGED = 5
#: The file of a checkpoint that says how far the training is.
PROGRESS = "training.json"
PRECISIONS = ("float32", "int8")
SIDES: tuple[Literal["source", "target"], ...] = ("source", "target")
#: Where the records of stages are.
RECORDS = "stages"
DATA_RECORDS = DATA / RECORDS


@dataclass(frozen=True)
class Setting:
    """One way to translate the test set."""

    precision: str
    beam: int
    deduplicated: bool = False

    @property
    def name(self) -> str:
        return f"{self.precision}-beam{self.beam}{'-dedup' if self.deduplicated else ''}"

    @property
    def is_compared(self) -> bool:
        """Whether tables show differences between models in this setting."""
        return self.precision == "float32" and not self.deduplicated


SETTINGS = (
    Setting("float32", 4),
    Setting("float32", 1),
    Setting("float32", 4, deduplicated=True),
    Setting("int8", 4),
    Setting("int8", 1),
)


def stages_of(model: Model) -> list[Stage]:
    """From the newest checkpoint of a training to the scores of the test set."""
    run, task = model.run, model.task
    progress = newest_checkpoint(run) / PROGRESS
    train = Stage("train", run, "checkpoints", {"progress": digests_of([progress])}, resumable=True)
    average = Stage("average", run / "averaged", CONFIG, {"last": AVERAGED}, ("train",))
    exports = [
        Stage(precision, run / precision, CONFIG, {"precision": precision}, ("average",))
        for precision in PRECISIONS
    ]
    text = {"text": digests_of(task.file("test", side) for side in SIDES)}
    judged = {**text, "metrics": task.metrics, "tokenizer": task.tokenizer}
    translations = [
        Stage(
            setting.name,
            scores_of(model, setting),
            None,
            {**asdict(setting), **judged},
            (setting.precision,),
        )
        for setting in SETTINGS
    ]
    scores = Stage("scores", scores_of_references(model), None, text, ("float32",))
    return [train, average, *exports, *translations, scores]


def digests_of(paths: Iterable[Path]) -> list[str | None]:
    """Of files; None stands for one that is not there."""
    return [file_digest(path) if path.is_file() else None for path in paths]


def updates_done(run: Path) -> int:
    """Updates after which the run has its newest checkpoint."""
    checkpoints = sorted((run / "checkpoints").glob("update-*"))
    return int(checkpoints[-1].name.removeprefix("update-")) if checkpoints else 0


def newest_checkpoint(run: Path) -> Path:
    return run / "checkpoints" / f"update-{updates_done(run):08}"


def agreement_of(model: Model) -> Path:
    return model.run / "agreement.json"


def scores_of_references(model: Model) -> Path:
    return model.run / "test" / "scores.jsonl"


def scores_of(model: Model, setting: Setting) -> Path:
    return model.run / "test" / f"{setting.name}.json"
