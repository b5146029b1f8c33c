"""A recipe: every setting of a training run, validated once.

The defaults are the paper's settings for Transformer base. `recipe_file.py` reads a recipe from
YAML. No PyTorch here.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from bothends.errors import UsageError, nearest
from bothends.model.config import LATER_SETTINGS, PRESETS, Architecture, ModelConfig
from bothends.order import GenerationOrder
from bothends.search.options import SearchOptions
from bothends.storage.schemas import Strict
from bothends.text.vocabulary import SpecialTokens


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, (str, Path, dict)) else value


def _as_corpus(value: Any) -> Any:
    return {"path": value} if isinstance(value, (str, Path)) else value


def _as_order(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return GenerationOrder.parse(value)
    except UsageError as error:
        raise ValueError(str(error)) from None


Order = Annotated[GenerationOrder, BeforeValidator(_as_order), PlainSerializer(str)]
Text = Annotated[Path, PlainSerializer(str)]


class Corpus(Strict):
    """A directory made by `bothends prepare`."""

    path: Text
    #: how often an epoch reads it, to give a small corpus more weight in a mixture
    repeat: int = Field(1, ge=1)


class Data(Strict):
    """What to learn from. Validation is on the `valid` split of the first corpus that has one."""

    prepared: Annotated[
        list[Annotated[Corpus, BeforeValidator(_as_corpus)]], BeforeValidator(_as_list)
    ] = Field(min_length=1)
    source_language: str | None = None
    target_language: str | None = None
    task: str = "translation"


class ModelSettings(Strict, Architecture):
    """The network: a preset and changes to it. `null` is the preset's value.

    The size of the vocabulary and its special tokens come from the data.
    """

    preset: str = "base"

    @model_validator(mode="after")
    def _goes_together(self) -> ModelSettings:
        self.check()
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _on_top_of_the_preset(
        cls, settings: Any, check: ModelWrapValidatorHandler[ModelSettings]
    ) -> ModelSettings:
        if not isinstance(settings, dict):
            return check(settings)
        given = {name: value for name, value in settings.items() if value is not None}
        preset = given.get("preset", "base")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}; {nearest(str(preset), PRESETS)}")
        model = check({**PRESETS[preset], **given})
        # What the recipe sets stays apart from what the preset does.
        model.model_fields_set.intersection_update(given)
        return model

    @model_serializer(mode="wrap")
    def _as_given(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What the recipe sets, and `None` for the preset's values."""
        content = write(self)
        kept = {
            name: value if name in (*self.model_fields_set, "dropout") else None
            for name, value in content.items()
            if name in self.model_fields_set or name not in LATER_SETTINGS
        }
        return {**kept, "preset": self.preset}

    def settings(self, init: ModelConfig | None = None) -> dict[str, Any]:
        """Every setting of the architecture: what the recipe says, or else the preset that it
        names, or else the model that training begins with, if there is one."""
        named = set(self.model_fields_set) | {"dropout"}
        if "preset" in named:
            named |= PRESETS[self.preset].keys()
        names = [field.name for field in fields(Architecture)]
        return {
            name: getattr(self if init is None or name in named else init, name) for name in names
        }

    def config(
        self,
        source_size: int,
        target_size: int,
        special: SpecialTokens,
        init: ModelConfig | None = None,
    ) -> ModelConfig:
        """The shape of the network for vocabularies of these sizes.

        A model that training begins with also says what stands around a text. Its decoder prompt
        becomes the start symbol: that is where the target language goes, in any order.
        """
        settings = self.settings(init)
        if init is not None:
            start = (init.special.start, *init.frame.prompt)[-1]
            special = replace(special, start=start)
            settings["frame"] = replace(init.frame, prompt=())
        if source_size != target_size:
            settings["target_vocabulary_size"] = target_size
        return ModelConfig(vocabulary_size=source_size, special=special, **settings)


class Optimiser(Strict):
    """What moves the weights, and how far."""

    #: what moves the matrices of the layers; Adam moves everything else
    matrices: Literal["adam", "muon"] = "adam"

    #: the highest learning rate; `None` is `(width * warmup) ** -0.5`, as in Vaswani et al.
    learning_rate: float | None = Field(None, gt=0.0)
    #: after the warm-up: fall with the root of the update, or to zero at the last one
    schedule: Literal["inverse-square-root", "cosine"] = "inverse-square-root"
    #: updates in which the learning rate rises linearly
    warmup: int = Field(4000, ge=1)
    beta1: float = Field(0.9, ge=0.0, lt=1.0)
    beta2: float = Field(0.98, ge=0.0, lt=1.0)
    epsilon: float = Field(1e-9, gt=0.0)
    #: largest norm of the gradient of an update; 0 does not clip
    clip_norm: float = Field(0.0, ge=0.0)

    @model_serializer(mode="wrap")
    def _as_before_muon(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """So that a recipe without it is written, and digested, as it always was."""
        content: dict[str, Any] = write(self)
        if content["matrices"] == "adam":
            del content["matrices"]
        return content


class Batch(Strict):
    """How pairs become updates."""

    #: real target tokens of an update (about), gathered over micro-batches and processes
    tokens: int = Field(25000, ge=1)
    #: padded tokens of a micro-batch (at most): rows times the longer of its two sides
    micro_tokens: int = Field(4096, ge=2)
    #: longer pairs are left out, and counted
    max_source_length: int = Field(256, ge=1)
    max_target_length: int = Field(256, ge=1)
    #: stretches of the corpus, each read by one process alone; a multiple of the processes
    lanes: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _holds_a_pair(self) -> Batch:
        longest = max(self.max_source_length, self.max_target_length) + 1
        if self.micro_tokens < longest:
            raise ValueError(
                f"micro_tokens {self.micro_tokens} cannot hold the longest pair allowed, "
                f"{longest} tokens with its end symbol; raise it or lower max_..._length"
            )
        return self


class Loss(Strict):
    label_smoothing: float = Field(0.1, ge=0.0, lt=1.0)


class Length(Strict):
    """When a run is over: whichever of these comes first."""

    updates: int | None = Field(100_000, ge=1)
    epochs: int | None = Field(None, ge=1)
    #: minutes of training, those of interrupted runs and of validation included
    minutes: float | None = Field(None, gt=0.0)

    @model_validator(mode="after")
    def _ends(self) -> Length:
        if self.updates is None and self.epochs is None and self.minutes is None:
            raise ValueError("set updates, epochs or minutes")
        return self


class Validation(Strict):
    """How a model is judged while it trains."""

    #: updates between two validations; 0 validates only at the end
    every: int = Field(2000, ge=0)
    #: the metric that selects the best checkpoint
    metric: Literal["loss", "bleu", "chrf", "rouge", "exact"] = "bleu"
    #: sacreBLEU's tokenizer, e.g. `char` or `ja-mecab` for Japanese
    tokenizer: str = "13a"
    beam: int = Field(SearchOptions.beam, ge=1)
    length_penalty: float = SearchOptions.length_penalty
    #: translate only the first this many pairs; the loss is always that of all
    sentences: int | None = Field(None, ge=1)
    #: stop after this many validations without a new best; 0 never does
    patience: int = Field(0, ge=0)


class Checkpoints(Strict):
    #: updates between two checkpoints
    every: int = Field(2000, ge=1)
    #: how many of the last ones to keep; the best one stays as well
    keep: int = Field(5, ge=1)


class Recipe(Strict):
    """All settings of a run."""

    data: Data
    order: Order = GenerationOrder()
    model: ModelSettings = ModelSettings()
    #: a model directory to start from; its order and number of decoder layers may differ
    init: Text | None = None
    #: parts that keep the weights they begin with; the output bias belongs to the embeddings
    freeze: Annotated[list[Literal["embeddings", "encoder"]], BeforeValidator(_as_list)] = Field(
        default_factory=list
    )
    optimiser: Optimiser = Optimiser()
    batch: Batch = Batch()
    loss: Loss = Loss()
    training: Length = Length()
    validation: Validation = Validation()
    checkpoints: Checkpoints = Checkpoints()
    seed: int = Field(1, ge=0)
    #: `None` lets PyTorch decide; each process of several has its own
    threads: int | None = Field(None, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    #: of matrix products; `auto` is bfloat16 on a GPU and float32 on a CPU
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    #: updates between two lines of the log
    log_every: int = Field(50, ge=1)
    tensorboard: bool = False
    #: where everything goes; `None` is `runs/NAME_OF_THE_RECIPE-ORDER`
    run: Text | None = None

    @model_validator(mode="after")
    def _freezes_what_is_trained(self) -> Recipe:
        if self.freeze and self.init is None:
            raise ValueError("freeze keeps the weights of a model to begin with: set init")
        return self

    @model_validator(mode="after")
    def _schedule_has_an_end(self) -> Recipe:
        if self.optimiser.schedule == "cosine":
            if self.training.updates is None:
                raise ValueError("optimiser.schedule cosine needs training.updates")
            if self.training.updates <= self.optimiser.warmup:
                raise ValueError(
                    f"optimiser.schedule cosine needs more training.updates than the "
                    f"{self.optimiser.warmup} of optimiser.warmup"
                )
        return self

    def dump(self) -> dict[str, Any]:
        """Plain data that `Recipe.model_validate` reads back."""
        return self.model_dump(mode="json")
