"""From a model of a table to its stored result, step by step, as `make` would.

A step is done if what it makes is there and not older than what it is made from; so a stopped
reproduction goes on where it was, and a model that is trained on has its results made anew. What a
step makes gets its name when it is complete.

    runs/NAME/                    the run directory of `bothends train`
        averaged/                 the average of its last checkpoints
        float32/, int8/           exported models
        test/float32-beam4.txt    translations of the test set, and .json: their scores
        test/scores.jsonl         forced scores of the references
        agreement.json            accuracy on contrastive pairs, where a table shows it
        result.json               all figures, each with its signature, and what they come from;
                                  translations and scores are beside it (`result_file.py`)
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bothends.data.shards import MANIFEST
from bothends.errors import BothendsError
from bothends.evaluation.bench.machine import this_machine
from bothends.model.directory import CONFIG
from bothends.search.scoring import ForcedScore
from bothends.text.pairs import read_lines
from bothends.training.run import RunDirectory, differences
from jobs import Job, Shell
from result_file import RESULT, read_summary, write_result
from table_file import Agreement, Model, Table, text_folder

#: Checkpoints that are averaged.
AVERAGED = 5
#: The file of a checkpoint that says how far the training is.
PROGRESS = "training.json"
PRECISIONS = ("float32", "int8")


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


def jobs_for(models: list[Model], changes: Sequence[str] = ()) -> list[Job]:
    """The jobs of these models, in their order, each after those it needs.

    `changes` are settings for `bothends train` that make no other run of it.
    """
    jobs: dict[str, Job] = {}
    for model in models:
        _add(model, changes, jobs)
    return list(jobs.values())


def _add(model: Model, changes: Sequence[str], jobs: dict[str, Job]) -> None:
    if model.name in jobs:
        return
    raw = model.raw_corpus
    jobs.setdefault(str(raw), Job(str(raw), raw, lambda shell: prepare_corpus(model, shell)))
    needs = [str(model.corpus)]
    if model.data == "distilled" and str(model.corpus) not in jobs:
        _add(model.teacher, changes, jobs)
        jobs[str(model.corpus)] = Job(
            str(model.corpus),
            model.corpus,
            lambda shell: distil_corpus(model, shell),
            (str(raw), model.teacher.name),
        )
    if model.init is not None:
        start = Model(model.task, model.init)
        _add(start, changes, jobs)
        needs.append(start.name)
    jobs[model.name] = Job(
        model.name, model.run, lambda shell: make_model(model, changes, shell), tuple(needs)
    )


def prepare_corpus(model: Model, shell: Shell) -> None:
    """The corpus of the task's recipe."""
    if not (model.raw_corpus / MANIFEST).exists():
        shell.say("preparing it")
        text_folder()  # complains if there is none
        shell.run(model.task.prepare)


def distil_corpus(model: Model, shell: Shell) -> None:
    """What the teacher writes for the training text, as a corpus."""
    corpus, task, teacher = model.corpus, model.task, model.teacher
    if (corpus / MANIFEST).exists():
        return
    written = corpus.with_name(f"{corpus.name}-text")
    shell.say(f"{teacher.name} writes it")
    shell.bothends(
        "distill", "--teacher", teacher.run / "int8", "--processes", 1,
        "--source", task.file("train", "source"), "--output", written,
    )  # fmt: skip
    shell.bothends(
        "prepare", "--vocabulary", teacher.run / "averaged", "--output", corpus,
        "--source", written / "train.source", "--target", written / "train.target",
        "--valid-source", task.file("valid", "source"),
        "--valid-target", task.file("valid", "target"),
        *task.prepare_distilled,
    )  # fmt: skip


def make_model(model: Model, changes: Sequence[str], shell: Shell) -> None:
    """Train, average, export, translate, score; then gather the figures."""
    run = model.run
    if not is_trained(model):
        shell.say("training")
        shell.bothends("train", model.task.recipe, *model.overrides(), *changes)
    averaged = run / "averaged"
    _make_model_directory(
        averaged,
        newest_checkpoint(run) / PROGRESS,
        lambda output: shell.bothends("average", run, "--last", AVERAGED, "--output", output),
    )
    for precision in PRECISIONS:
        export = partial(
            shell.bothends, "export", averaged, "--precision", precision, "--no-check", "--output"
        )
        _make_model_directory(run / precision, averaged / CONFIG, export)
    files = [_translate(model, setting, shell) for setting in SETTINGS]
    files.append(_score(model, shell))
    if not _is_fresh(run / RESULT, *files):
        write_result(run, gather(model))
        shell.say(f"done: {run / RESULT}")


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


def updates_done(run: Path) -> int:
    """Updates after which the run has its newest checkpoint."""
    checkpoints = sorted((run / "checkpoints").glob("update-*"))
    return int(checkpoints[-1].name.removeprefix("update-")) if checkpoints else 0


def newest_checkpoint(run: Path) -> Path:
    return run / "checkpoints" / f"update-{updates_done(run):08}"


def gather(model: Model) -> dict[str, Any]:
    """Everything that is known of a finished model, each figure with its signature."""
    evaluations: list[dict[str, Any]] = []
    signatures: dict[str, str] = {}
    for setting in SETTINGS:
        found = json.loads(_scores_of(model, setting).read_bytes())
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
    scores = [_forced_score(line) for line in read_lines(_scores_of_references(model))]
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
            setting.name: list(read_lines(_scores_of(model, setting).with_suffix(".txt")))
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
        "length_penalty": 0.6,
        "threads": 1,
        "bothends": "+".join(filter(None, [machine.bothends, machine.commit])),
        "onnxruntime": machine.packages.get("onnxruntime"),
    }
    return "|".join(f"{name}:{value}" for name, value in facts.items())


def _translate(model: Model, setting: Setting, shell: Shell) -> Path:
    """Translate the test set and score it; the file with the scores."""
    task, exported = model.task, model.run / setting.precision
    scores = _scores_of(model, setting)
    lines = scores.with_suffix(".txt")

    def evaluate(output: Path) -> None:
        shell.say(f"translating, {setting.name}")
        shell.bothends(
            "evaluate", "--model", exported, "--beam", setting.beam, "--threads", 1,
            *["--dedup"] * setting.deduplicated,
            "--source", task.file("test", "source"), "--reference", task.file("test", "target"),
            "--metrics", task.metrics, "--tokenizer", task.tokenizer,
            "--output", _partial(lines), "--json", output,
        )  # fmt: skip
        os.replace(_partial(lines), lines)
        found = json.loads(output.read_bytes())
        output.write_text(json.dumps({**found, "signature": sign(model, setting)}))

    _make_file(scores, exported / CONFIG, evaluate)
    return scores


def _score(model: Model, shell: Shell) -> Path:
    """The log probabilities of the references, from which perplexity and PMI follow."""
    task, exported, scores = model.task, model.run / "float32", _scores_of_references(model)

    def score(output: Path) -> None:
        shell.bothends(
            "score", "--model", exported, "--json", "--threads", 1,
            "--source", task.file("test", "source"), "--target", task.file("test", "target"),
            output=output,
        )  # fmt: skip

    _make_file(scores, exported / CONFIG, score)
    return scores


def agreement_jobs(tables: Sequence[Table], models: Sequence[Model]) -> list[Job]:
    """The contrastive pairs, for those of the models that stand in tables that show them."""
    shown = {model for table in tables if "agreement" in table.analyses for model in table.models()}
    return [
        Job(
            f"{model.name}, agreement",
            agreement_of(model),
            partial(_agree, model, model.task.agreement),
            (model.name,),
        )
        for model in models
        if model in shown and model.task.agreement is not None
    ]


def agreement_of(model: Model) -> Path:
    return model.run / "agreement.json"


def _agree(model: Model, pairs: Agreement, shell: Shell) -> None:
    """How often the right verb is more probable than the wrong one, by distance."""
    exported, folder = model.run / "float32", text_folder()

    def agree(output: Path) -> None:
        shell.say("contrastive pairs")
        shell.bothends(
            "agreement", "--model", exported, "--threads", 1, "--json", output,
            "--source", folder / pairs.source,
            "--correct", folder / pairs.correct, "--incorrect", folder / pairs.incorrect,
        )  # fmt: skip

    _make_file(agreement_of(model), exported / CONFIG, agree)


def _scores_of_references(model: Model) -> Path:
    return model.run / "test" / "scores.jsonl"


def _scores_of(model: Model, setting: Setting) -> Path:
    return model.run / "test" / f"{setting.name}.json"


def _make_model_directory(target: Path, source: Path, make: Callable[[Path], None]) -> None:
    """A model whose description is not older than `source`, or a new one, under its final name."""
    if _is_fresh(target / CONFIG, source):
        return
    new = _partial(target)
    shutil.rmtree(new, ignore_errors=True)
    make(new)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(new, target)


def _make_file(target: Path, source: Path, make: Callable[[Path], None]) -> None:
    if not _is_fresh(target, source):
        target.parent.mkdir(exist_ok=True)
        make(_partial(target))
        os.replace(_partial(target), target)


def _is_fresh(target: Path, *sources: Path) -> bool:
    if not target.exists():
        return False
    return target.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def _partial(target: Path) -> Path:
    return target.with_name(f".{target.name}.partial")
