"""From a chain's recipe to its stages, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bothends.chain.command import (
    CommandStage,
    as_flags,
    checksums,
    dotted,
    plain_options,
    spell_value,
)
from bothends.chain.recipe import (
    ChainRecipe,
    Converting,
    Splicing,
    Student,
    Training,
    TrainingText,
)
from bothends.data.shards import MANIFEST
from bothends.engines.registry import Precision
from bothends.errors import UsageError, nearest
from bothends.model.directory import CONFIG
from bothends.model.hub import is_hub_name
from bothends.training.recipe import Recipe
from bothends.training.recipe_file import load_recipe

EVALUATION = "evaluation.json"
#: Directory of the stages' records.
RECORDS = "chain"
SPLICED_TEXT = "train.source"
#: The corpora that students learn from: translations of the text, and of text spliced from it.
DISTILLED, SPLICED = "distilled", "spliced"

#: Settings of a corpus whose vocabulary is a model's.
_GIVEN_VOCABULARY = {"vocabulary_size": None, "character_coverage": None}
#: Settings of a training recipe that do not affect what is learned.
_OPERATIONAL = ("threads", "device", "precision", "log_every", "tensorboard", "run")


def stages_of(chain: ChainRecipe, place: Path) -> list[CommandStage]:
    """All stages in the order in which they run; `place` is where training recipes are."""
    for name in chain.students:
        taken = name in ("teacher", DISTILLED, SPLICED)
        if taken or not name.replace("-", "").replace("_", "").isalnum():
            raise UsageError(f"students.{name}: expected a name such as 2x1, of letters and digits")
    trained = ["teacher"]
    for name, student in chain.students.items():
        if student.init is not None and student.init not in trained:
            raise UsageError(
                f"students.{name}.init: no model {student.init!r} is trained before it; "
                f"{nearest(student.init, trained)}"
            )
        if student.spliced and chain.splice is None:
            raise UsageError(f"students.{name}.spliced: no text is spliced; set splice.lines")
        trained.append(name)
    stages = list(_stages(chain, place))
    outputs = [stage.output for stage in stages]
    for stage in stages:
        if outputs.count(stage.output) > 1 or stage.output == chain.directory / RECORDS:
            raise UsageError(
                f"{stage.output}: more than one part of the chain would write there; rename one of "
                f"students ({', '.join(chain.students)}), or change directory"
            )
    return stages


def _stages(chain: ChainRecipe, place: Path) -> Iterator[CommandStage]:
    directory = chain.directory
    if chain.teacher is not None:
        teacher = _recipe(chain.teacher, place, {"run": str(directory / "teacher")})
        prepared = teacher.recipe.data.prepared[0].path
        if len(teacher.recipe.data.prepared) > 1:
            raise UsageError(
                f"{place / chain.teacher.recipe}: a chain's teacher learns from one corpus; name "
                "one in data.prepared, or set it in teacher.set"
            )
        yield _prepare("prepare", directory, chain.corpus, prepared)
        yield from _train("teacher", chain, chain.teacher, teacher, ("prepare",))
    elif chain.convert is not None:
        yield from _convert(chain, chain.convert)
        prepared = directory / "prepared"
        if any(student.references for student in chain.students.values()):
            corpus = chain.corpus.model_copy(update=_GIVEN_VOCABULARY)
            stage = _weights_stage(chain, "teacher")
            weights = _weights(chain, "teacher")
            yield _prepare("prepare", directory, corpus, prepared, weights, (stage,))
    yield from _distill(chain, "distill", chain.corpus.source, DISTILLED)
    if chain.splice is not None:
        yield _splice(chain, chain.splice)
        spliced = (directory / "spliced" / SPLICED_TEXT,)
        yield from _distill(chain, "distill-spliced", spliced, SPLICED, ("splice",))

    for name, student in chain.students.items():
        recipe = _recipe(student, place, _student_settings(chain, name, student, prepared))
        needs = ["prepare-distilled"]
        if student.spliced:
            needs.append("prepare-spliced")
        if student.init is not None:
            needs.append(_weights_stage(chain, student.init))
        if student.references:
            needs.append("prepare")
        yield from _train(name, chain, student, recipe, tuple(needs))

    names = ["teacher", *chain.students]
    for beam in chain.evaluation.beams:
        yield _evaluate(chain, names, beam)


@dataclass(frozen=True)
class _TrainingRecipe:
    """A training recipe and how the command line spells it."""

    recipe: Recipe
    arguments: tuple[str, ...]


def _recipe(training: Training, place: Path, given: Mapping[str, Any]) -> _TrainingRecipe:
    """The recipe of a model with what the chain gives it, which its own settings may change."""
    path = place / training.recipe
    settings = {**given, **dict(dotted(training.set))}
    overrides = [f"{key}={spell_value(value)}" for key, value in settings.items()]
    return _TrainingRecipe(load_recipe(path, overrides), (str(path), *overrides))


def _splice(chain: ChainRecipe, splicing: Splicing) -> CommandStage:
    options = {
        "source": chain.corpus.source,
        # What is measured later must stay unseen.
        "exclude": [*chain.corpus.valid_source, chain.evaluation.source],
        **splicing.model_dump(),
    }
    texts = (*chain.corpus.source, *chain.corpus.valid_source, chain.evaluation.source)
    return CommandStage(
        name="splice",
        section="splice",
        arguments=lambda output: [
            "splice",
            *as_flags({**options, "output": output / SPLICED_TEXT}),
        ],
        output=chain.directory / "spliced",
        completion_marker=SPLICED_TEXT,
        settings={**plain_options(options, chain.directory), "text": checksums(texts)},
    )


def _distill(
    chain: ChainRecipe,
    name: str,
    source: tuple[Path, ...],
    corpus: str,
    needs: tuple[str, ...] = (),
) -> Iterator[CommandStage]:
    """Let the teacher translate, and prepare that as the corpus `NAME-prepared`."""
    directory = chain.directory
    exported = directory / "teacher-exported"
    distilled = directory / ("distilled" if corpus == DISTILLED else f"{corpus}-distilled")
    options = {**chain.distill.model_dump(), "source": source}
    flags = {"teacher": exported, **options}
    yield CommandStage(
        name=name,
        section="distill",
        arguments=lambda output: ["distill", *as_flags({**flags, "output": output})],
        output=distilled,
        completion_marker=MANIFEST,
        settings={**plain_options(options, directory), "text": checksums(() if needs else source)},
        needs=("teacher-export", *needs),
        resumable=True,
        speed_arguments=("--processes", str(chain.processes)),
    )
    text = chain.corpus.model_copy(
        update={
            "source": (distilled / "train.source",),
            "target": (distilled / "train.target",),
            **_GIVEN_VOCABULARY,
        }
    )
    prepared = directory / f"{corpus}-prepared"
    needs = (name, _weights_stage(chain, "teacher"))
    weights = _weights(chain, "teacher")
    yield _prepare(f"prepare-{corpus}", directory, text, prepared, weights, needs)


def _weights(chain: ChainRecipe, name: str) -> Path:
    """The directory of a model that gives others its weights and vocabulary."""
    converted = name == "teacher" and chain.convert is not None
    return chain.directory / f"{name}-{'converted' if converted else 'averaged'}"


def _section(chain: ChainRecipe, name: str) -> str:
    """The part of the recipe that has a model's settings."""
    if name != "teacher":
        return f"students.{name}"
    return "teacher" if chain.convert is None else "convert"


def _weights_stage(chain: ChainRecipe, name: str) -> str:
    """The stage that makes it."""
    converted = name == "teacher" and chain.convert is not None
    return f"{name}-{'convert' if converted else 'average'}"


def _convert(chain: ChainRecipe, converting: Converting) -> Iterator[CommandStage]:
    """Convert and export a teacher that somebody else has trained."""
    options = converting.model_dump(exclude={"model", "precision"})
    model = converting.model
    files = sorted(model.rglob("*")) if model.is_dir() else [model]
    content: dict[str, Any] = {"files": checksums(path for path in files if not path.is_dir())}
    if is_hub_name(model):  # of which the converted model says what commit it was
        content = {"repository": str(model)}
    converted = _weights(chain, "teacher")
    yield CommandStage(
        name=_weights_stage(chain, "teacher"),
        section="convert",
        arguments=lambda output: ["convert", str(model), *as_flags({**options, "output": output})],
        output=converted,
        completion_marker=CONFIG,
        settings={**options, **content},
    )
    yield _export("teacher", chain, converted, converting.precision)


def _student_settings(
    chain: ChainRecipe, name: str, student: Student, prepared: Path
) -> dict[str, Any]:
    directory, run = chain.directory, chain.directory / name
    corpora: list[Any] = [str(directory / f"{DISTILLED}-prepared")]
    if student.spliced:
        corpora.append({"path": str(directory / f"{SPLICED}-prepared"), "repeat": student.spliced})
    if student.references:
        corpora.append({"path": str(prepared), "repeat": student.references})
    settings = {"order": str(student.order), "data.prepared": corpora, "run": str(run)}
    if student.init is not None:
        settings["init"] = str(_weights(chain, student.init))
    return settings


def _train(
    name: str,
    chain: ChainRecipe,
    training: Training,
    recipe: _TrainingRecipe,
    needs: tuple[str, ...],
) -> Iterator[CommandStage]:
    """Train, average, export."""
    run = recipe.recipe.run
    assert run is not None  # `load_recipe` names one
    key = _section(chain, name)
    keep = recipe.recipe.checkpoints.keep
    if training.average > keep:
        raise UsageError(
            f"{key}.average is {training.average}, but the training keeps {keep} checkpoints; "
            f"lower {key}.average, or raise checkpoints.keep in {key}.set"
        )
    updates, every = recipe.recipe.training.updates, recipe.recipe.checkpoints.every
    if updates is not None and -(-updates // every) < training.average:
        raise UsageError(
            f"{key}.average is {training.average}, but {updates} updates with a checkpoint every "
            f"{every} give fewer; lower {key}.average, or checkpoints.every in {key}.set"
        )
    averaged = _weights(chain, name)
    settings = {
        key: value for key, value in recipe.recipe.dump().items() if key not in _OPERATIONAL
    }
    yield CommandStage(
        name=f"{name}-train",
        section=key,
        arguments=lambda _: ["train", *recipe.arguments],
        output=run,
        completion_marker="checkpoints",
        settings=settings,
        needs=needs,
        resumable=True,
        processes=chain.processes,
    )
    average = {"last": training.average}
    yield CommandStage(
        name=_weights_stage(chain, name),
        section=key,
        arguments=lambda output: ["average", str(run), *as_flags({**average, "output": output})],
        output=averaged,
        completion_marker=CONFIG,
        settings=average,
        needs=(f"{name}-train",),
    )
    yield _export(name, chain, averaged, training.precision)


def _export(name: str, chain: ChainRecipe, weights: Path, precision: Precision) -> CommandStage:
    export = {"precision": precision}
    sample = {}
    if precision != "float32":  # what a lower precision costs is measured on text
        sample = {"sample": chain.evaluation.source, "reference": chain.evaluation.reference}
    flags = {**export, **sample}
    return CommandStage(
        name=f"{name}-export",
        section=_section(chain, name),
        arguments=lambda output: ["export", str(weights), *as_flags({**flags, "output": output})],
        output=chain.directory / f"{name}-exported",
        completion_marker=CONFIG,
        settings=export,
        needs=(_weights_stage(chain, name),),
    )


def _prepare(
    name: str,
    directory: Path,
    corpus: TrainingText,
    output: Path,
    vocabulary: Path | None = None,
    needs: tuple[str, ...] = (),
) -> CommandStage:
    options = {**corpus.model_dump(), "vocabulary": vocabulary}
    # Another stage's output is described by that stage's record.
    given = () if needs else (*corpus.source, *corpus.target)
    texts = (*given, *corpus.valid_source, *corpus.valid_target)
    return CommandStage(
        name=name,
        section="corpus",
        arguments=lambda output: ["prepare", *as_flags({**options, "output": output})],
        output=output,
        completion_marker=MANIFEST,
        settings={**plain_options(options, directory), "text": checksums(texts)},
        needs=needs,
    )


def _evaluate(chain: ChainRecipe, names: list[str], beam: int) -> CommandStage:
    models = [chain.directory / f"{name}-exported" for name in names]
    options = {
        "model": models,
        "source": chain.evaluation.source,
        "reference": chain.evaluation.reference,
        "beam": beam,
    }

    def arguments(output: Path) -> list[str]:
        files = {"output": [output / f"{name}.txt" for name in names], "json": output / EVALUATION}
        return ["evaluate", *as_flags({**options, **files})]

    return CommandStage(
        name=f"evaluate-beam-{beam}",
        section="evaluation",
        arguments=arguments,
        output=chain.directory / f"evaluation-beam-{beam}",
        completion_marker=EVALUATION,
        settings={
            **plain_options(options, chain.directory),
            "text": checksums((chain.evaluation.source, chain.evaluation.reference)),
        },
        needs=tuple(f"{name}-export" for name in names),
    )
