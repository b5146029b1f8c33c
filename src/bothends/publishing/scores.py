"""What `bothends evaluate --json FILE` says of one model, for its card."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from bothends.errors import BothendsError, UsageError
from bothends.files import real_path
from bothends.storage.records import LARGEST_JSON, parse_json, read_bounded
from bothends.storage.schemas import first_problem


@dataclass(frozen=True)
class Score:
    """One metric of the model."""

    name: str
    score: float
    interval: tuple[float, float] | None
    signature: str

    @property
    def shown(self) -> str:
        if self.interval is None:
            return f"{self.score:.1f}"
        low, high = self.interval
        return f"{self.score:.1f} ({low:.1f} to {high:.1f})"


@dataclass(frozen=True)
class Scores:
    """Its metrics on one test set."""

    dataset: str
    #: order, engine and search
    settings: str
    metrics: tuple[Score, ...]

    @property
    def dataset_type(self) -> str:
        """The name as the Hub would spell an identifier."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.dataset).strip("-") or "text"


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Interval(_Read):
    low: float
    high: float


class _Figure(_Read):
    score: float
    interval: _Interval | None = None


class _System(_Read):
    name: str
    origin: str
    figures: dict[str, _Figure]


class _Evaluation(_Read):
    reference: str
    signatures: dict[str, str]
    systems: list[_System]


def read_scores(path: Path, model: Path) -> Scores:
    """The scores of `model` in the JSON of an evaluation."""
    try:
        content = parse_json(read_bounded(path, LARGEST_JSON))
        evaluation = _Evaluation.model_validate(content)
    except OSError as error:
        raise BothendsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise BothendsError(
            f"{path}: not the JSON of bothends evaluate, {first_problem(error)}"
        ) from None
    except ValueError as error:
        raise BothendsError(f"{path}: damaged, not JSON ({error})") from None
    system = _find(path, evaluation.systems, model)
    return Scores(
        dataset=Path(evaluation.reference).name,
        settings=system.origin.removeprefix(f"{system.name}: "),
        metrics=tuple(
            Score(
                name,
                figure.score,
                (figure.interval.low, figure.interval.high) if figure.interval else None,
                evaluation.signatures.get(name, ""),
            )
            for name, figure in system.figures.items()
        ),
    )


def _find(path: Path, systems: list[_System], model: Path) -> _System:
    # The same directory may be spelled in several ways.
    found = [each for each in systems if real_path(Path(each.name)) == real_path(model)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in systems) or "none"
    raise UsageError(f"{path}: evaluates {names}, and not {model}")
