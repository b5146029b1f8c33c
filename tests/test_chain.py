"""`bothends chain`: from text to evaluated students, skipped, resumed or refused stage by stage."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import bothends.training.loop
from bothends.chain.recipe import load_chain
from bothends.chain.run import Chain
from bothends.chain.stages import stages_of
from bothends.cli import run
from bothends.errors import BothendsError
from bothends.files import locked
from bothends.model.directory import read_description
from bothends.training.recipe_file import load_recipe
from command_line import error_line
from corpus_data import make_sentences, write_lines
from killed_writes import Killed, killed_at_write
from training_data import TINY, write_recipe

RECIPES = Path(__file__).parent.parent / "experiments" / "recipes"
STAGES = [
    *("prepare", "teacher-train", "teacher-average", "teacher-export"),
    *("distill", "prepare-distilled"),
    *("2x1-train", "2x1-average", "2x1-export"),
    *("scratch-train", "scratch-average", "scratch-export"),
    "evaluate-beam-2",
]
CHAIN: dict[str, Any] = {
    "directory": "runs",
    "corpus": {
        "source": "train.source",
        "target": "train.target",
        "valid_source": "valid.source",
        "valid_target": ["valid.target"],
        "vocabulary_size": 300,
    },
    "teacher": {"recipe": "train.yaml", "average": 2, "precision": "float32"},
    "distill": {"beam": 1},
    "students": {
        "2x1": {"recipe": "train.yaml", "average": 2, "order": "2x1", "references": 2},
        "scratch": {
            "recipe": "train.yaml",
            "average": 1,
            "order": "2x2",
            "init": None,
            "set": {"model.decoder_layers": 1, "seed": 7},
        },
    },
    "evaluation": {"source": "test.source", "reference": "test.target", "beams": [2]},
}


def write_texts(lines: Callable[[str, int], list[str]], **sizes: int) -> None:
    """Aligned files of lines and of the same with their words reversed."""
    for name, count in sizes.items():
        sources = lines(name, count)
        write_lines(Path(f"{name}.source"), sources)
        write_lines(Path(f"{name}.target"), [" ".join(reversed(line.split())) for line in sources])


def run_chain(*overrides: str) -> int:
    return run(["chain", "chain.yaml", *overrides])


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands run here, which is quicker: the names of those that ran."""
    commands: list[str] = []

    def run_here(arguments: list[str], processes: int) -> int:
        assert processes == 1
        commands.append(arguments[0])
        return run(arguments)

    monkeypatch.setattr("bothends.chain.run.run_command", run_here)
    leave_out_what_is_slow_or_changes(monkeypatch)
    return commands


def leave_out_what_is_slow_or_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bothends.training.loop, "draw_curves", lambda log: log)
    for module in ("distillation.corpus_directory", "training.setup"):
        patch.setattr(f"bothends.{module}.source_commit", lambda: "abc")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, recipes and a chain of tiny models that is done. Not to be changed."""
    directory = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setattr("bothends.chain.run.run_command", lambda arguments, _: run(arguments))
        leave_out_what_is_slow_or_changes(patch)
        write_texts(
            lambda name, count: make_sentences(count, len(name)), train=120, valid=12, test=8
        )
        training = {**TINY, "data": {"prepared": "prepared"}}
        training["model"] = {**TINY["model"], "decoder_layers": 2}
        write_recipe(Path("train.yaml"), training)
        write_recipe(Path("chain.yaml"), CHAIN)
        assert run_chain() == 0
    return directory


@pytest.fixture
def workspace(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the finished chain, to be changed at will."""
    shutil.copytree(finished, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def results(directory: Path) -> dict[str, bytes]:
    """All outputs but the run directories, which hold timings."""
    outputs = ("*-averaged", "*-exported", "distilled*", "evaluation-*")
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for pattern in outputs
        for path in sorted((directory / "runs").glob(f"{pattern}/**/*"))
        if path.is_file()
    }


def test_every_stage_leaves_its_output(finished: Path) -> None:
    names = {name.split("/")[1] for name in results(finished)}
    models = ("teacher", "2x1", "scratch")
    expected = {f"{model}-{what}" for model in models for what in ("averaged", "exported")}
    assert names == expected | {"distilled", "distilled-prepared", "evaluation-beam-2"}
    evaluation = json.loads((finished / "runs/evaluation-beam-2/evaluation.json").read_text())
    assert len(evaluation["systems"]) == 3
    assert not list((finished / "runs").glob(".*"))


def test_students_are_what_the_recipe_says(finished: Path) -> None:
    for name, order, layers in (("teacher", "1x1", 2), ("2x1", "2x1", 2), ("scratch", "2x2", 1)):
        description = read_description(finished / "runs" / f"{name}-exported")
        assert (str(description.order), description.model.decoder_layers) == (order, layers)
        recipe = yaml.safe_load((finished / "runs" / name / "recipe.yaml").read_text())
        corpora = [(corpus["path"], corpus["repeat"]) for corpus in recipe["data"]["prepared"]]
        expected = {
            "teacher": (None, [("prepared", 1)]),
            "2x1": ("runs/teacher-averaged", [("runs/distilled-prepared", 1), ("prepared", 2)]),
            "scratch": (None, [("runs/distilled-prepared", 1)]),
        }
        assert (recipe["init"], corpora) == expected[name]


def test_what_is_done_is_skipped(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_chain() == 0
    assert in_this_process == []
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said[:-1]] == [
        f"[{number}/{len(STAGES)}] {name}" for number, name in enumerate(STAGES, start=1)
    ]
    assert all(": done, " in line for line in said[:-1])
    assert said[-1] == f"all {len(STAGES)} stages are done"


@pytest.mark.slow
def test_killed_again_and_again_it_arrives_at_the_same_models(
    workspace: Path, finished: Path
) -> None:
    shutil.rmtree("runs")
    shutil.rmtree("prepared")
    kills = 0
    # more than a checkpoint or a prepared corpus takes
    with killed_at_write(60, ("fsync", "replace", "rename")) as writes:
        while True:
            writes.calls = 0
            try:
                assert run_chain() == 0
                break
            except Killed:
                kills += 1
                assert kills < 30, "it does not get on"
    assert kills > 5
    assert results(workspace) == results(finished)


@pytest.mark.parametrize(
    ("removed", "command"),
    [("evaluation-beam-2", "evaluate"), ("2x1-exported", "export"), ("distilled", "distill")],
)
def test_what_was_removed_is_made_again(
    workspace: Path, finished: Path, in_this_process: list[str], removed: str, command: str
) -> None:
    shutil.rmtree(Path("runs") / removed)
    assert run_chain() == 0
    assert in_this_process == [command]
    assert results(workspace) == results(finished)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("corpus.max_length=99", "prepared: made with another max_length than now"),
        ("teacher.average=1", "runs/teacher-averaged: made with another last than now"),
        ("students.2x1.precision=float32", "runs/2x1-exported: made with another precision"),
        ("teacher.set.training.updates=8", "runs/teacher-averaged: made from another output of"),
        ("distill.drop_empty=true", "prepared: made from another output of distill than now"),
        ("distill.beam=2", "runs/distilled: holds a distilled corpus of another job (beam 1, not"),
        ("students.2x1.set.seed=2", "runs/2x1: holds a run with seed=1, but this recipe has 2"),
    ],
)
def test_what_was_made_otherwise_is_refused(
    workspace: Path, override: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_chain(override) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if "bothends: error:" in line]
    assert len(errors) == 1
    assert expected in errors[0]


@pytest.mark.parametrize(
    ("text", "outdated"),
    [
        ("train.source", "prepared: made with another text than now"),
        ("valid.target", "prepared: made with another text than now"),
        ("test.source", "evaluation-beam-2: made with another text than now"),
    ],
)
def test_text_that_was_edited_is_noticed(
    workspace: Path, text: str, outdated: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(text, "a", encoding="utf-8") as file:
        file.write("one more line\n")
    assert run_chain() == 1
    assert outdated in capsys.readouterr().err


def test_outputs_made_by_hand_are_taken(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree("runs/chain")
    assert run_chain() == 0
    # Those that go on by themselves are asked, and find that nothing is to be done.
    assert in_this_process == ["train", "distill", "train", "train"]
    said = capsys.readouterr().err
    assert said.count("which is taken as it is") == len(STAGES) - 4
    assert "runs/distilled: complete, nothing to do" in said


def test_a_chain_with_whole_paths_is_the_same_from_another_directory(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("corpus.source", "corpus.target", "corpus.valid_source", "corpus.valid_target")
    names = ("train.source", "train.target", "valid.source", "valid.target")
    overrides = [f"{key}={workspace / name}" for key, name in zip(keys, names, strict=True)]
    overrides += [
        f"evaluation.{side}={workspace / 'test.source'}" for side in ("source", "reference")
    ]

    def settings() -> list[Any]:
        chain = load_chain(
            workspace / "chain.yaml", [f"directory={workspace / 'runs'}", *overrides]
        )
        return [stage.settings for stage in stages_of(chain, workspace)]

    here = settings()
    monkeypatch.chdir("/")
    assert settings() == here


def test_two_chains_are_kept_apart(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(Path("runs/chain/.lock"), "taken"):
        assert error_line(["chain", "chain.yaml"], capsys) == (1, "runs: a chain is running there")


def test_half_an_output_is_not_taken(workspace: Path) -> None:
    shutil.rmtree("runs/chain")
    Path("runs/2x1-exported/config.json").unlink()
    stages = stages_of(load_chain(Path("chain.yaml")), Path())
    with pytest.raises(BothendsError, match="2x1-exported: exists, but is not a complete output"):
        Chain(stages, Path("runs")).show()


def test_a_dry_run_shows_commands_and_runs_none(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree("runs")
    assert run(["chain", "chain.yaml", "--dry-run", "processes=2"]) == 0
    assert in_this_process == []
    assert not Path("runs").exists()
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"^\S+ (\S+):.*", r"\1", line) for line in lines[::2]] == STAGES
    assert lines[0].endswith("prepare: found, prepared")
    assert lines[2].endswith("teacher-train: to do, runs/teacher")
    torchrun = "    torchrun --standalone --nproc-per-node 2 -m bothends train train.yaml "
    assert lines[3] == f"{torchrun}run=runs/teacher"
    # What is shown is what a user can type.
    words = shlex.split(lines[13])
    recipe = load_recipe(Path(words[words.index("train") + 1]), words[words.index("train") + 2 :])
    assert (str(recipe.order), str(recipe.run)) == ("2x1", "runs/2x1")
    assert [corpus.repeat for corpus in recipe.data.prepared] == [1, 2]


def test_a_student_may_begin_with_another_one(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = {
        stage.name: stage
        for stage in stages_of(
            load_chain(Path("chain.yaml"), ["students.scratch.init=2x1"]), Path()
        )
    }
    assert "init=runs/2x1-averaged" in stages["scratch-train"].command
    assert "2x1-average" in stages["scratch-train"].needs
    assert "teacher-average" not in stages["scratch-train"].needs
    # What began otherwise is not taken for it.
    assert run_chain("students.scratch.init=2x1") == 1
    assert "runs/scratch: made from another output of 2x1-average" in capsys.readouterr().err


def test_a_student_may_learn_from_spliced_text(workspace: Path, in_this_process: list[str]) -> None:
    third = {**CHAIN["students"]["2x1"], "references": 0, "spliced": 2}
    overrides = ["splice.lines=3", f"students.third={json.dumps(third)}"]
    assert run_chain(*overrides, "evaluation.beams=[1]") == 0
    made = ["splice", "distill", "prepare", "train", "average", "export", "evaluate"]
    assert in_this_process == made
    text = Path("runs/spliced/train.source").read_text().splitlines()
    assert text == Path("runs/spliced-distilled/train.source").read_text().splitlines()
    assert len(text) == 3
    for unseen in ("train.source", "valid.source", "test.source"):
        assert not set(text) & set(Path(unseen).read_text().splitlines())
    recipe = yaml.safe_load(Path("runs/third/recipe.yaml").read_text())
    corpora = [(corpus["path"], corpus["repeat"]) for corpus in recipe["data"]["prepared"]]
    assert corpora == [("runs/distilled-prepared", 1), ("runs/spliced-prepared", 2)]
    # And nothing is to be done a second time.
    in_this_process.clear()
    assert run_chain(*overrides, "evaluation.beams=[1]") == 0
    assert in_this_process == []


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["distil.beam=1"], "unknown key 'distil'; did you mean distill?"),
        (["distill.baem=1"], "unknown key 'distill.baem'; did you mean beam?"),
        (["students.2x1.ordre=1x1"], "unknown key 'students.2x1.ordre'; did you mean order?"),
        (["students={}"], "students: expected at least 1"),
        (["directory=[1]"], "directory: expected a path"),
        (["students.2x1.order=2y1"], "students.2x1.order: "),
        (["students.a/b={order: 2x1, recipe: train.yaml}"], "students.a/b: expected a name"),
        (["students.teacher={order: 2x1, recipe: train.yaml}"], "students.teacher: expected"),
        (
            ["students.2x1.init=techer"],
            "no model 'techer' is trained before it; did you mean teach",
        ),
        (["students.2x1.init=scratch"], "students.2x1.init: no model 'scratch' is trained before"),
        (["students.spliced={order: 2x1, recipe: train.yaml}"], "students.spliced: expected"),
        (["students.2x1.spliced=1"], "students.2x1.spliced: no text is spliced; set splice.lines"),
        (["splice.lines=0"], "splice.lines: "),
        (["corpus.source=$NO_SUCH_PLACE/text"], "$NO_SUCH_PLACE/text: this environment variable"),
        (["teacher.recipe=none.yaml"], "none.yaml: no such recipe"),
        (["teacher.set.ordre=2x1"], "override: unknown key 'ordre'; did you mean order?"),
        (["teacher.set.data.prepared=[a, b]"], "a chain's teacher learns from one corpus"),
        (["teacher"], "'teacher': expected KEY=VALUE"),
        (
            ["students.2x1.set.checkpoints.every=6"],
            "students.2x1.average is 2, but 6 updates with a checkpoint every 6 give fewer; lower",
        ),
        (
            ["students.teacher-averaged={order: 2x1, recipe: train.yaml, average: 1}"],
            "runs/teacher-averaged: more than one part of the chain would write there",
        ),
        (
            ["students.chain={order: 2x1, recipe: train.yaml, average: 1}"],
            "runs/chain: more than one part",
        ),
        (
            ["students.2x1.average=9"],
            "students.2x1.average is 9, but the training keeps 2 checkpoints; lower",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(
    workspace: Path, overrides: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message = error_line(["chain", "chain.yaml", *overrides], capsys)
    assert status == 2
    assert expected in message


def test_a_failing_command_ends_the_chain(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree("runs/2x1-averaged")
    shutil.rmtree(Path("runs/2x1/last").resolve())
    assert run_chain() == 1
    assert in_this_process == ["average"]
    said = capsys.readouterr().err
    assert "fewer than the 2 to average" in said
    assert "2x1-average: its options are set by students.2x1 of the chain" in said
    assert "2x1-average: ended with status 1; the same command goes on from here" in said
    assert not Path("runs/2x1-averaged").exists()


def test_a_vocabulary_that_cannot_be_made_names_its_setting(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree("runs")
    shutil.rmtree("prepared")
    assert run_chain("corpus.vocabulary_size=5000") == 1
    assert in_this_process == ["prepare"]
    said = capsys.readouterr().err
    assert "vocabulary" in said
    assert "prepare: its options are set by corpus of the chain" in said


@pytest.mark.parametrize("key", ["corpus.target", "corpus.valid_source", "evaluation.reference"])
def test_missing_text_is_noticed_before_any_work(
    workspace: Path, key: str, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = error_line(["chain", "chain.yaml", f"{key}=nowhere"], capsys)
    assert found == (1, f"{key}: nowhere: no such file")
    assert in_this_process == []


def test_an_output_that_has_lost_its_proof_is_named(
    workspace: Path, in_this_process: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runs/2x1-averaged/config.json").unlink()
    assert run_chain() == 1
    said = capsys.readouterr().err
    assert (
        "runs/2x1-averaged: exists, but is not a complete output of 2x1-average; remove it" in said
    )
    assert in_this_process == []


def test_the_chain_of_the_model_in_the_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHENDS_DATA", "data")
    path = RECIPES / "tatoeba-en-de" / "chain.yaml"
    chain = load_chain(path)
    stages = {stage.name: stage for stage in stages_of(chain, path.parent)}
    teacher = load_recipe(path.with_name("teacher.yaml"))
    assert stages["teacher-train"].output == teacher.run
    assert stages["prepare"].output == teacher.data.prepared[0].path
    for order in ("1x1", "2x1", "2x2"):
        assert str(chain.students[f"{order}-spliced"].order) == order
    assert all(student.precision == "int8" for student in chain.students.values())
    evaluation = stages["evaluate-beam-4"].command
    assert (
        "--source data/tatoeba-en-de/test.en --reference data/tatoeba-en-de/test.de" in evaluation
    )


def test_the_page_on_distillation_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (RECIPES.parents[1] / "docs" / "distillation.md").read_text("utf-8")
    *_, chain = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("DATA", "data")
    (tmp_path / "chain.yaml").write_text(chain, "utf-8")
    recipe = {**TINY, "data": {"prepared": "prepared"}, "checkpoints": {"every": 1, "keep": 5}}
    write_recipe(tmp_path / "teacher.yaml", recipe)
    stages = stages_of(load_chain(tmp_path / "chain.yaml"), tmp_path)
    table = page[page.index("| stage |") :].split("\n\n")[0].splitlines()[2:]
    shown = [name for row in table for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert len(shown) >= 10
    for name in shown:
        stage = name.replace("NAME", "2x1").replace("-beam-B", "-beam-4")
        assert stage in {stage.name for stage in stages}
    assert run(["distill", "--help"]) == 0
    options = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    table_rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `--")]
    shown_options = set(re.findall(r"--[\w-]+", "".join(table_rows)))
    assert len(shown_options) >= 10
    assert shown_options <= options


@pytest.mark.slow
def test_a_student_learns_from_its_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole chain on a task that takes seconds to learn: reverse up to five letters."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(1)
    write_texts(
        lambda _, count: [
            " ".join(generator.choices("abcdefgh", k=generator.randint(1, 5))) for _ in range(count)
        ],
        train=3000,
        valid=60,
        test=60,
    )
    training = {
        **TINY,
        "data": {"prepared": "prepared"},
        "model": {
            **TINY["model"],
            **{"decoder_layers": 2, "width": 64, "heads": 4, "feed_forward": 128, "norm": "pre"},
            "dropout": {"residual": 0, "attention": 0, "embedding": 0},
        },
        "optimiser": {
            **{"learning_rate": 0.005, "schedule": "cosine", "warmup": 30, "clip_norm": 1.0}
        },
        "batch": {**TINY["batch"], "tokens": 500, "micro_tokens": 700},
        "loss": {"label_smoothing": 0},
        "training": {"updates": 220},
        "validation": {"every": 0, "metric": "loss"},
        "checkpoints": {"every": 10, "keep": 2},
        "log_every": 100,
    }
    write_recipe(Path("train.yaml"), training)
    student = {**CHAIN["students"]["2x1"], "references": 0, "set": {"model.decoder_layers": 1}}
    corpus = {**CHAIN["corpus"], "vocabulary_size": None}
    write_recipe(Path("chain.yaml"), {**CHAIN, "corpus": corpus, "students": {"2x1": student}})
    assert run_chain() == 0
    evaluation = json.loads(Path("runs/evaluation-beam-2/evaluation.json").read_text())
    for system in evaluation["systems"]:
        # Both reach 90. A model that has not learned to reverse stays below 10.
        assert system["figures"]["bleu"]["score"] > 50, system["name"]
