"""A chain's recipe: which text, which teacher, which students, what to measure.

Models are described by training recipes, named here and changed by dotted keys under `set`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)

from bothends.distillation.filters import PairFilters
from bothends.engines.registry import Precision
from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.hub import is_hub_name
from bothends.search.options import SearchOptions
from bothends.storage.schemas import Strict, first_problem
from bothends.training.recipe import Order
from bothends.training.recipe_file import parse_override, read_yaml, set_key


def _expanded(path: Path) -> Path:
    """`$BOTHENDS_DATA/train.en` with the variable's value."""
    text = os.path.expandvars(path)
    if "$" in text:
        raise ValueError(f"{path}: this environment variable is not set")
    return Path(text)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Text = Annotated[Path, AfterValidator(_expanded)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1)]


class TrainingText(Strict):
    """The original text, and settings of `bothends prepare` for it and for distilled text."""

    source: Texts
    target: Texts
    valid_source: Texts
    valid_target: Texts
    vocabulary_size: int | None = None
    character_coverage: float | None = None
    max_length: int = 256
    max_ratio: float = 9.0
    drop_duplicates: bool = False


class Training(Strict):
    """A model that is trained, averaged and exported."""

    #: a recipe of `bothends train`, next to the chain's file
    recipe: Path
    #: settings of it to change, by dotted keys
    set: dict[str, Any] = Field(default_factory=dict)
    #: checkpoints that are averaged, the last ones
    average: int = Field(5, ge=1)
    precision: Precision = "int8"


class Converting(Strict):
    """A teacher that somebody else has trained, for `bothends convert`."""

    model: Text
    source_language: str | None = None
    target_language: str | None = None
    #: of its export, which translates the corpus
    precision: Precision = "int8"


class Student(Training):
    """A model that learns from the teacher's translations."""

    order: Order
    #: whose weights it begins with: the teacher's, those of a student above it, or none
    init: str | None = "teacher"
    #: how often an epoch reads, besides the distilled pairs, the original ones
    references: int = Field(0, ge=0)
    #: and the teacher's translations of spliced sources
    spliced: int = Field(0, ge=0)


class Distilling(PairFilters):
    """How the teacher translates, and which of its translations are left out."""

    beam: int = Field(SearchOptions.beam, ge=1)
    length_penalty: float = Field(SearchOptions.length_penalty, ge=0)


class Splicing(Strict):
    """How many new sources are spliced from those of the corpus."""

    lines: int = Field(ge=1)
    seed: int = Field(1, ge=0)


class EvaluationText(Strict):
    """What all models translate at the end."""

    source: Text
    reference: Text
    beams: tuple[int, ...] = (4, 1)


class ChainRecipe(Strict):
    """All settings of a chain."""

    #: where everything goes
    directory: Path
    corpus: TrainingText
    #: the teacher is trained, or converted: one of the two
    teacher: Training | None = None
    convert: Converting | None = None
    distill: Distilling = Distilling()
    splice: Splicing | None = None
    students: dict[str, Student] = Field(min_length=1)
    evaluation: EvaluationText
    #: that share a training or a distillation
    processes: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _has_one_teacher(self) -> ChainRecipe:
        if (self.teacher is None) == (self.convert is None):
            raise ValueError("give either teacher or convert")
        return self


def check_texts(chain: ChainRecipe) -> None:
    """Complain about missing text before hours of training, not after them."""
    corpus, evaluation = chain.corpus, chain.evaluation
    texts = {
        "corpus.source": corpus.source,
        "corpus.target": corpus.target,
        "corpus.valid_source": corpus.valid_source,
        "corpus.valid_target": corpus.valid_target,
        "evaluation.source": (evaluation.source,),
        "evaluation.reference": (evaluation.reference,),
    }
    for key, paths in texts.items():
        for path in paths:
            if not path.is_file():
                raise BothendsError(f"{key}: {path}: no such file")
    if chain.convert is not None:
        model = chain.convert.model
        if not is_hub_name(model) and not model.exists():
            raise BothendsError(f"convert.model: {model}: no such file or directory")


def load_chain(path: Path, overrides: Sequence[str] = ()) -> ChainRecipe:
    """The chain's recipe in a YAML file, with `key=value` overrides."""
    content = read_yaml(path)
    for override in overrides:
        key, value = parse_override(override)
        set_key(content, key.split("."), value)
    try:
        return ChainRecipe.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        if problem["type"] == "extra_forbidden":
            *place, key = map(str, problem["loc"])
            known = _known(ChainRecipe, place)
            raise UsageError(
                f"{path}: unknown key {'.'.join([*place, key])!r}; {nearest(key, known)}"
            ) from None
        raise UsageError(f"{path}: {first_problem(error)}") from None


def _known(section: type[BaseModel], place: Sequence[str]) -> list[str]:
    """The keys of the section at a place."""
    for key in place:
        inner = Student if section is ChainRecipe and key == "students" else None
        field = section.model_fields.get(key)
        annotation = inner or (field and field.annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            section = annotation
    return list(section.model_fields)
