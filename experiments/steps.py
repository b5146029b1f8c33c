"""From a model of a table to its stored result, stage by stage.

A stage is done if its record says that it was made from what is there now (`bothends.jobs.stages`);
so a stopped reproduction goes on where it was, and a model that is trained on has its results made
anew. What a stage makes gets its name when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bothends.data.shards import MANIFEST
from bothends.errors import BothendsError
from bothends.evaluation.bench.machine import this_machine
from bothends.jobs.stages import Stage, StageGraph
from bothends.model.directory import CONFIG
from bothends.search.options import SearchOptions
from bothends.search.scoring import ForcedScore
from bothends.text.pairs import read_lines
from bothends.training.run import RunDirectory, differences
from jobs import ExperimentJob, Shell
from model_files import (
    AVERAGED,
    DATA_RECORDS,
    PRECISIONS,
    PROGRESS,
    RECORDS,
    SETTINGS,
    SIDES,
    Setting,
    agreement_of,
    digests_of,
    newest_checkpoint,
    scores_of,
    scores_of_references,
    stages_of,
    updates_done,
)
from result_file import RESULT, read_summary, write_result
from table_file import AgreementPairs, Model, PaperTable, text_folder


def jobs_for(models: list[Model], changes: Sequence[str] = ()) -> list[ExperimentJob]:
    """The jobs of these models, in their order, each after those it needs.

    `changes` are settings for `bothends train` that make no other run of it.
    """
    jobs: dict[str, ExperimentJob] = {}
    for model in models:
        _add(model, changes, jobs)
    return list(jobs.values())


def _add(model: Model, changes: Sequence[str], jobs: dict[str, ExperimentJob]) -> None:
    if model.name in jobs:
        return
    raw = model.raw_corpus
    jobs.setdefault(
        str(raw), ExperimentJob(str(raw), raw, lambda shell: prepare_corpus(model, shell))
    )
    needs = [str(model.corpus)]
    if model.data == "distilled" and str(model.corpus) not in jobs:
        _add(model.teacher, changes, jobs)
        jobs[str(model.corpus)] = ExperimentJob(
            str(model.corpus),
            model.corpus,
            lambda shell: distil_corpus(model, shell),
            (str(raw), model.teacher.name),
        )
    if model.init is not None:
        _add(model.init, changes, jobs)
        needs.append(model.init.name)
    jobs[model.name] = ExperimentJob(
        model.name, model.run, lambda shell: make_model(model, changes, shell), tuple(needs)
    )


def prepare_corpus(model: Model, shell: Shell) -> None:
    """The corpus of the task's recipe."""

    def prepare() -> None:
        shell.say("preparing it")
        shell.run(model.task.prepare)

    stage = _raw_corpus(model)
    _ensure_corpus(stage, StageGraph([stage], DATA_RECORDS), prepare)


def distil_corpus(model: Model, shell: Shell) -> None:
    """What the teacher writes for the training text, as a corpus."""
    corpus, task, teacher = model.corpus, model.task, model.teacher

    def distil() -> None:
        written = corpus.with_name(f"{corpus.name}-text")
        sources = [task.file("train", "source")]
        if model.spliced:
            sources.append(corpus.with_name(f"{corpus.name}.{task.source}"))
            shell.bothends(
                "splice", "--source", sources[0], "--lines", model.spliced,
                "--exclude", task.file("valid", "source"), task.file("test", "source"),
                "--output", sources[1],
            )  # fmt: skip
        shell.say(f"{teacher.name} writes it")
        shell.bothends(
            "distill", "--teacher", teacher.run / "int8", "--processes", 1,
            "--source", *sources, "--output", written,
        )  # fmt: skip
        shell.bothends(
            "prepare", "--vocabulary", teacher.run / "averaged", "--output", corpus,
            "--source", written / "train.source", "--target", written / "train.target",
            "--valid-source", task.file("valid", "source"),
            "--valid-target", task.file("valid", "target"),
            *task.prepare_distilled,
        )  # fmt: skip

    settings: dict[str, Any] = {"options": list(task.prepare_distilled)}
    if model.spliced:
        settings["spliced"] = model.spliced
    raw = _raw_corpus(model)
    stage = Stage(corpus.name, corpus, MANIFEST, settings, (raw.name, "int8"))
    _ensure_corpus(stage, StageGraph([raw, *stages_of(teacher), stage], DATA_RECORDS), distil)


def _raw_corpus(model: Model) -> Stage:
    task, corpus = model.task, model.raw_corpus
    texts = [task.file(split, side) for split in ("train", "valid") for side in SIDES]
    settings = {"command": list(task.prepare), "text": digests_of(texts)}
    return Stage(corpus.name, corpus, MANIFEST, settings)


def _ensure_corpus(stage: Stage, graph: StageGraph, make: Callable[[], None]) -> None:
    """Make a corpus that is not there. One that was made from something else is an error:

    models have learned from it.
    """
    if stage.is_complete:
        if graph.state(stage) == "found":
            graph.adopt(stage)
        return
    graph.adopt(stage)  # before it exists: whatever has its name has its record
    make()


def make_model(model: Model, changes: Sequence[str], shell: Shell) -> None:
    """Train, average, export, translate, score; then gather the figures."""
    run = model.run
    # Outputs without records are older than records are.
    adopt = is_done(model)
    if not is_trained(model):
        shell.say("training")
        shell.bothends("train", model.task.recipe, *model.overrides(), *changes)
    stages = {stage.name: stage for stage in stages_of(model)}
    graph = StageGraph(list(stages.values()), run / RECORDS)

    def average(output: Path) -> None:
        shell.bothends("average", run, "--last", AVERAGED, "--output", output)

    graph.ensure(stages["average"], average, adopt)
    for precision in PRECISIONS:
        export = partial(
            shell.bothends,
            *("export", run / "averaged", "--precision", precision, "--no-check", "--output"),
        )
        graph.ensure(stages[precision], export, adopt)
    for setting in SETTINGS:
        graph.ensure(stages[setting.name], partial(_translate, model, setting, shell), adopt)
    graph.ensure(stages["scores"], partial(_score, model, shell), adopt)

    def store(_: Path) -> None:
        write_result(run, gather(model))
        shell.say(f"done: {run / RESULT}")

    # Gathered from the files themselves: one that was made again may be signed by another version.
    files = [stages[name].output for name in (*(each.name for each in SETTINGS), "scores")]
    settings = {"files": digests_of(files)}
    result = Stage("result", run / RESULT, None, settings, ("train",), resumable=True)
    StageGraph([stages["train"], result], run / RECORDS).ensure(result, store)


def is_trained(model: Model) -> bool:
    """Whether the run is over, and the recipe is the row's. If in doubt, `train` finds out."""
    recipe = model.recipe()
    limit = recipe.training.updates
    if limit is None or updates_done(model.run) < limit:
        return False
    try:
        return not any(differences(RunDirectory(model.run).recipe(), recipe))
    except BothendsError:
        return False


def is_done(model: Model) -> bool:
    """Whether all figures of a model are stored here, and are those of its last update."""
    return (
        is_trained(model)
        and (model.run / RESULT).exists()
        and read_summary(model.run)["training"]["updates"] == updates_done(model.run)
    )


def gather(model: Model) -> dict[str, Any]:
    """Everything that is known of a finished model, each figure with its signature."""
    evaluations: list[dict[str, Any]] = []
    signatures: dict[str, str] = {}
    for setting in SETTINGS:
        found = json.loads(scores_of(model, setting).read_bytes())
        evaluations.append(
            {
                **asdict(setting),
                "signature": found["signature"],
                "lines": found["lines"],
                "bootstrap": found["bootstrap"],
                "metrics": {
                    name: {"score": figure["score"], "interval": figure["interval"]}
                    for name, figure in found["systems"][0]["figures"].items()
                },
            }
        )
        signatures |= found["signatures"]  # the same in every setting
    recipe = RunDirectory(model.run).recipe()
    progress = json.loads((newest_checkpoint(model.run) / PROGRESS).read_bytes())
    described = json.loads((model.run / "averaged" / CONFIG).read_bytes())["provenance"]
    scores = [_forced_score(line) for line in read_lines(scores_of_references(model))]
    return {
        "name": model.name,
        "order": model.order,
        "data": model.data,
        "seed": model.seed,
        "training": {
            "updates": progress["update"],
            "target_tokens": progress["target_tokens"],
            "seconds": round(progress["seconds"]),
            "precision": recipe.precision,
            "commit": described["commit"],
            "corpora": described["data"],
            "versions": described["versions"],
        },
        "signatures": signatures,
        "evaluations": evaluations,
        "recipe": recipe.dump(),
        # So that others can compare with it, and need nothing else.
        "translations": {
            setting.name: list(read_lines(scores_of(model, setting).with_suffix(".txt")))
            for setting in SETTINGS
            if setting.is_compared
        },
        "references": {
            "logprobs": [round(score.logprob, 4) for score in scores],
            "symbols": [score.length + 1 for score in scores],
        },
    }


def _forced_score(line: str) -> ForcedScore:
    record = json.loads(line)
    return ForcedScore(record["token_logprobs"], record["end_logprob"])


def sign(model: Model, setting: Setting) -> str:
    """What someone needs in order to translate the test set in the same way, now."""
    machine, source = this_machine(), model.task.file("test", "source")
    facts = {
        "data": f"{model.task.text}/{source.name}",
        "sha256": hashlib.sha256(source.read_bytes()).hexdigest()[:12],
        "order": model.order,
        "engine": "onnx",
        **asdict(setting),
        "length_penalty": SearchOptions.length_penalty,
        "threads": 1,
        "bothends": "+".join(filter(None, [machine.bothends, machine.commit])),
        "onnxruntime": machine.packages.get("onnxruntime"),
    }
    return "|".join(f"{name}:{value}" for name, value in facts.items())


def _translate(model: Model, setting: Setting, shell: Shell, output: Path) -> None:
    """Translate the test set, and write its scores to `output`."""
    task, exported = model.task, model.run / setting.precision
    lines = scores_of(model, setting).with_suffix(".txt")
    partial_lines = lines.with_name(f".{lines.name}.partial")
    shell.say(f"translating, {setting.name}")
    shell.bothends(
        "evaluate", "--model", exported, "--beam", setting.beam, "--threads", 1,
        "--deduplicate" if setting.deduplicated else "--no-deduplicate",
        "--source", task.file("test", "source"), "--reference", task.file("test", "target"),
        "--metrics", task.metrics, "--tokenizer", task.tokenizer,
        "--output", partial_lines, "--json", output,
    )  # fmt: skip
    os.replace(partial_lines, lines)
    found = json.loads(output.read_bytes())
    output.write_text(json.dumps({**found, "signature": sign(model, setting)}))


def _score(model: Model, shell: Shell, output: Path) -> None:
    """The log probabilities of the references, from which perplexity and PMI follow."""
    task, exported = model.task, model.run / "float32"
    shell.bothends(
        "score", "--model", exported, "--json", "--threads", 1,
        "--source", task.file("test", "source"), "--target", task.file("test", "target"),
        output=output,
    )  # fmt: skip


def agreement_jobs(tables: Sequence[PaperTable], models: Sequence[Model]) -> list[ExperimentJob]:
    """The contrastive pairs, for those of the models that stand in tables that show them."""
    shown = {model for table in tables if "agreement" in table.analyses for model in table.models()}
    return [
        ExperimentJob(
            f"{model.name}, agreement",
            agreement_of(model),
            partial(_agree, model, model.task.agreement),
            (model.name,),
        )
        for model in models
        if model in shown and model.task.agreement is not None
    ]


def _agree(model: Model, pairs: AgreementPairs, shell: Shell) -> None:
    """How often the right verb is more probable than the wrong one, by distance."""
    exported, folder = model.run / "float32", text_folder()
    texts = [folder / name for name in (pairs.source, pairs.correct, pairs.incorrect)]
    settings = {"text": digests_of(texts)}
    stage = Stage("agreement", agreement_of(model), None, settings, ("float32",))

    def agree(output: Path) -> None:
        shell.say("contrastive pairs")
        source, correct, incorrect = texts
        shell.bothends(
            "analyse", "agreement", "--model", exported, "--threads", 1, "--json", output,
            "--source", source, "--correct", correct, "--incorrect", incorrect,
        )  # fmt: skip

    StageGraph([*stages_of(model), stage], model.run / RECORDS).ensure(stage, agree)
