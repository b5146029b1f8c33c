"""`experiments/run.py`: it makes what is missing, only that, and can be stopped at any time."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import bothends.training.loop
from bothends.cli import run as run_command
from bothends.errors import BothendsError, UsageError
from bothends.evaluation.analyses.agreement import make_pairs, report, tally
from bothends.jobs.processes import available_cores
from corpus_data import make_sentences, write_lines
from training_data import TINY

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))
(
    columns,
    figures,
    jobs,
    model_files,
    result_file,
    results,
    run,
    speed,
    steps,
    table_file,
    tables,
) = map(
    import_module,
    [
        "columns",
        "figures",
        "jobs",
        "model_files",
        "result_file",
        "results",
        "run",
        "speed",
        "steps",
        "table_file",
        "tables",
    ],
)

TASK = {
    "recipe": "tiny.yaml",
    "text": "toy",
    "source": "in",
    "target": "out",
    "prepare": ["bothends", "prepare", "--vocabulary-size", "300", "--output", "runs/data/tiny"]
    + [part for split in ("", "valid-") for side, name in (("source", "in"), ("target", "out"))
       for part in (f"--{split}{side}", f"text/toy/{'valid' if split else 'train'}.{name}")],
    "metrics": "bleu,length",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in: text, a recipe, a task, and a table of two rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOTHENDS_DATA", str(tmp_path / "text"))
    results.load_result.cache_clear()  # of another folder
    results.compare.cache_clear()
    text = tmp_path / "text" / "toy"
    text.mkdir(parents=True)
    for seed, (split, count) in enumerate({"train": 120, "valid": 8, "test": 6}.items()):
        lines = make_sentences(count, seed, words=40)
        write_lines(text / f"{split}.in", lines)
        write_lines(text / f"{split}.out", [" ".join(reversed(line.split())) for line in lines])
    write_recipe()
    write_yaml("tasks/toy.yaml", TASK)
    write_table([{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}])
    return tmp_path


def write_recipe(**training: Any) -> None:
    content = {
        **TINY,
        "data": {"prepared": "runs/data/tiny"},
        "training": training or {"updates": 6},
    }
    write_yaml("tiny.yaml", {**content, "checkpoints": {"every": 1, "keep": 5}})


def write_table(rows: list[dict[str, Any]], **content: Any) -> Path:
    table = {"title": "A table", "task": "toy", "columns": ["order", "raw"], "rows": rows}
    return write_yaml("tables/toy.yaml", {**table, **content})


def write_yaml(name: str, content: Any) -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def load(names: tuple[str, ...] = ()) -> list[Any]:
    models: list[Any] = table_file.load_table(Path("tables/toy.yaml")).models(names)
    return models


class InThisProcess:
    """Runs the commands of a job here: a process for each would take a second to start."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def bothends(self, *arguments: Any, output: Path | None = None) -> None:
        self.commands.append(arguments[0])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            status = run_command([str(argument) for argument in arguments])
        if output is not None:
            output.write_text(printed.getvalue(), encoding="utf-8")
        assert status == 0, arguments
        if arguments[0] == "distill":
            # After six updates a teacher has nothing to say, and nothing is no corpus.
            text = Path(arguments[arguments.index("--output") + 1])
            sources = (text / "train.source").read_text()
            assert (text / "train.target").read_text().count("\n") == sources.count("\n") >= 120
            shutil.copyfile(text / "train.source", text / "train.target")

    def run(self, command: list[str]) -> None:
        self.bothends(*command[1:])

    def say(self, text: str) -> None: ...


def make(models: list[Any]) -> list[str]:
    """Run all jobs of some models; the commands that it took."""
    shell = InThisProcess()
    for job in steps.jobs_for(models):
        job.work(shell)
    return shell.commands


ALL_STEPS = ["train", "average", "export", "export", *["evaluate"] * 5, "score"]


def test_a_model_is_made_once_and_stored_with_signatures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bothends.training.loop, "draw_curves", lambda log: log)
    write_table([{"name": "ends", "order": "2x1", "data": ["distilled"]}])
    models = load()
    # The teacher comes first, though the table does not show it.
    expected = ["prepare", *ALL_STEPS, "distill", "prepare", *ALL_STEPS]
    assert make(models) == expected
    assert make(models) == []
    run = Path("runs/tiny-2x1-distilled")
    result = json.loads((run / "result.json").read_bytes())
    assert result["name"] == "tiny-2x1-distilled"
    assert result["training"]["updates"] == 6
    settings = [(each["precision"], each["beam"]) for each in result["evaluations"]]
    assert settings == [("float32", 4), ("float32", 1), ("float32", 4), ("int8", 4), ("int8", 1)]
    greedy = result["evaluations"][1]
    for part in ("data:toy/test.in|", "|order:2x1|", "|engine:onnx|", "|beam:1|", "|threads:1|"):
        assert part in greedy["signature"]
    assert greedy["metrics"]["bleu"].keys() == {"score", "interval"}
    assert result["signatures"]["bleu"].startswith("nrefs:1|")
    scores = list(map(json.loads, (run / "test" / "scores.jsonl").read_text().splitlines()))
    assert len(scores) == greedy["lines"] == 6
    logprob = sum(scores[2]["token_logprobs"]) + scores[2]["end_logprob"]
    stored = result_file.read_references(run)[2]
    assert stored == (pytest.approx(logprob, abs=1e-4), len(scores[2]["token_logprobs"]) + 1)
    lines = (run / "test" / "float32-beam1.txt").read_text().split("\n")[:-1]
    assert result_file.read_translations(run, "float32-beam1") == lines

    # What is missing is made again, and what depends on it; nothing else.
    (run / "test" / "int8-beam1.json").unlink()
    assert make(models) == ["evaluate"]
    write_recipe(updates=7)
    assert make([load()[0].teacher]) == ALL_STEPS
    result = json.loads(Path("runs/tiny-1x1/result.json").read_bytes())
    assert result["training"]["updates"] == 7


def test_a_run_of_the_train_command_is_recognised(folder: Path) -> None:
    (model,) = load(("ends",))
    shell = InThisProcess()
    shell.run(TASK["prepare"])  # type: ignore[arg-type]
    assert not steps.is_trained(model)
    shell.bothends("train", "tiny.yaml", "order=2x1")
    assert steps.is_trained(model)
    assert not steps.is_done(model)
    write_recipe(updates=6, minutes=600)  # the same run, as `train` sees it
    assert steps.is_trained(load(("ends",))[0])
    recipe = yaml.safe_load(Path("tiny.yaml").read_text())
    write_yaml("tiny.yaml", {**recipe, "loss": {"label_smoothing": 0.2}})
    assert not steps.is_trained(load(("ends",))[0])


def test_trainings_are_told_what_the_runner_was_told(folder: Path) -> None:
    shell = InThisProcess()
    for job in steps.jobs_for(load(("ends",)), ["log_every=3", "validation.patience=9"]):
        job.work(shell)
    result = json.loads(Path("runs/tiny-2x1/result.json").read_bytes())
    assert result["recipe"]["log_every"] == 3
    assert result["training"]["precision"] == "auto"
    assert steps.is_done(load(("ends",))[0])


def test_contrastive_pairs_are_for_tables_that_show_them(folder: Path) -> None:
    pairs = {"source": "toy/test.in", "correct": "toy/test.out", "incorrect": "toy/test.in"}
    write_yaml("tasks/toy.yaml", {**TASK, "agreement": pairs})
    rows: list[dict[str, Any]] = [{"name": "plain", "order": "1x1"}]
    shown = table_file.load_table(write_table(rows, analyses=["agreement"]))
    make(shown.models())
    (job,) = steps.agreement_jobs([shown], shown.models())
    assert job.needs == ("tiny-1x1",)
    shell = InThisProcess()
    job.work(shell)
    job.work(shell)
    assert shell.commands == ["analyse"]
    (system,) = json.loads(model_files.agreement_of(shown.models()[0]).read_bytes())["systems"]
    assert system["name"]
    assert not steps.agreement_jobs([table_file.load_table(write_table(rows))], shown.models())


def test_models_are_named_after_all_that_makes_them(folder: Path) -> None:
    row = {"name": "x", "order": "2x2", "data": ["raw", "distilled"], "seeds": [1, 2]}
    write_table([{**row, "settings": {"model.decoder_layers": 1}, "init": "1x1"}])
    names = ["tiny-2x2-decoder-layers-1-from-1x1", "tiny-2x2-distilled-decoder-layers-1-from-1x1"]
    models = load()
    assert [model.name for model in models] == [
        names[0], f"{names[0]}-seed-2", names[1], f"{names[1]}-seed-2"
    ]  # fmt: skip
    recipe = models[-1].recipe()
    assert (str(recipe.order), recipe.seed, recipe.model.decoder_layers) == ("2x2", 2, 1)
    assert recipe.data.prepared[0].path == Path("runs/data/tiny-distilled")
    assert recipe.init == Path("runs/tiny-1x1/averaged")


def test_distilled_models_of_a_table_may_begin_with_trained_weights(folder: Path) -> None:
    write_yaml("tasks/toy.yaml", {**TASK, "continued": {"training.updates": 4, "seed": 7}})
    rows: list[dict[str, Any]] = [
        {"name": "plain", "order": "1x1", "data": ["raw", "distilled"]},
        {"name": "ends", "order": "2x1", "settings": {"training.updates": 5}},
    ]
    write_table(rows, data=["distilled"], init="1x1")
    plain, student, ends = load()
    assert [plain.name, student.name] == ["tiny-1x1", "tiny-1x1-distilled-from-1x1"]
    assert [each.recipe().init for each in (plain, student, ends)] == [
        None, Path("runs/tiny-1x1/averaged"), Path("runs/tiny-1x1/averaged")
    ]  # fmt: skip
    assert [each.recipe().training.updates for each in (plain, student, ends)] == [6, 4, 5]
    assert [each.recipe().seed for each in (plain, student, ends)] == [1, 7, 7]
    assert "tiny-1x1" in {job.name: job.needs for job in steps.jobs_for([ends])}[ends.name]


def test_a_row_may_continue_another_one_seed_by_seed(folder: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "ends", "order": "2x1", "init": "1x1", "spliced": 7, "seeds": [1, 2]},
        {"name": "pairs", "order": "2x2", "continues": "ends", "spliced": 7, "seeds": [2]},
    ]
    write_table(rows, data=["distilled"])
    ends, other, pairs = load()
    assert ends.name == "tiny-2x1-distilled-spliced-7-from-1x1"
    assert pairs.name == f"tiny-2x2-distilled-spliced-7-from-{other.short_name}-seed-2"
    assert other.short_name.startswith("2x1-")
    assert other.short_name != ends.short_name
    assert pairs.recipe().init == other.run / "averaged"
    needs = {job.name: job.needs for job in steps.jobs_for([pairs])}
    assert needs[pairs.name] == ("runs/data/tiny-distilled-spliced-7", other.name)
    assert list(needs).index(other.name) < list(needs).index(pairs.name)


def test_spliced_lines_are_translated_with_the_training_text(folder: Path) -> None:
    write_table([{"name": "ends", "order": "2x1", "spliced": 7}], data=["distilled"])
    (model,) = load()
    make([model.teacher])
    shell = InThisProcess()
    steps.distil_corpus(model, shell)
    assert shell.commands == ["splice", "distill", "prepare"]
    written = [
        Path(f"runs/data/tiny-distilled-spliced-7{name}").read_text().splitlines()
        for name in (".in", "-text/train.source")
    ]
    training = Path("text/toy/train.in").read_text().splitlines()
    assert written[1] == training + written[0]
    assert len(written[0]) == 7
    assert not set(written[0]) & set(training)


def test_a_distilled_model_comes_after_its_teacher(folder: Path) -> None:
    write_table([{"name": "ends", "order": "2x1"}], data=["distilled"])
    found = {job.name: job.needs for job in steps.jobs_for(load())}
    assert list(found) == [
        "runs/data/tiny",
        "tiny-1x1",
        "runs/data/tiny-distilled",
        "tiny-2x1-distilled",
    ]
    assert found["runs/data/tiny-distilled"] == ("runs/data/tiny", "tiny-1x1")
    assert found["tiny-2x1-distilled"] == ("runs/data/tiny-distilled",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": []}, "columns"),
        ({"task": None}, "row 'plain' has no task"),
        ({"rows": [{"name": "x", "order": "3x1"}]}, "rows.0.order"),
        (
            {"rows": [{"name": "x", "order": "1x1", "settings": {"model.layers": 1}}]},
            "model.layers",
        ),
        (
            {"rows": [{"name": "x", "order": "2x1", "continues": "y"}]},
            "row 'x': continues: no row 'y' above it",
        ),
        (
            {
                "rows": [
                    {"name": "x", "order": "2x1"},
                    {"name": "y", "order": "2x2", "continues": "x", "seeds": [2]},
                ]
            },
            "row 'y': continues: 'x' has no seed 2",
        ),
        (
            {
                "rows": [
                    {"name": "x", "order": "2x1", "data": ["raw"]},
                    {"name": "y", "order": "2x2", "continues": "x", "data": ["distilled"]},
                ]
            },
            "'x' has no seed 1 with distilled data",
        ),
        (
            {"rows": [{"name": "x", "order": "2x1", "continues": "y", "init": "1x1"}]},
            "leave out `init`",
        ),
    ],
)
def test_a_mistake_in_a_table_is_one_line(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    write_table([{"name": "plain", "order": "1x1"}])
    path = Path("tables/toy.yaml")
    write_yaml(str(path), {**yaml.safe_load(path.read_text()), **change})
    with pytest.raises(UsageError, match=message) as raised:
        table_file.load_table(path)
    assert "\n" not in str(raised.value)


def test_unknown_rows_and_tables_are_errors(folder: Path) -> None:
    with pytest.raises(UsageError, match="did you mean plain"):
        load(("plan",))
    with pytest.raises(UsageError, match="no table 'tou'"):
        table_file.load_tables(["tou"])


def test_the_tables_that_come_with_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    found = {table.name: table for table in table_file.load_tables([])}
    assert list(found) == sorted(found)
    # What the page says of each: the models that no table before it has.
    page = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|.*\| (\d+)(?: more)? \|$", page, re.MULTILINE)
    known: set[str] = set()
    counts = []
    for name, table in found.items():
        names = {model.name for model in table.models()}
        counts.append((name.partition("-")[2], str(len(names - known))))
        known |= names
        assert set(table.columns) <= columns.COLUMNS.keys()
        assert Path(table.models()[0].task.prepare[0]).exists()
    assert counts == told
    assert table_file.load_tables(["main"]) == [found["1-main"]]


def job(name: str, work: Callable[[Any], None], *needs: str) -> Any:
    return jobs.ExperimentJob(name, Path(name), work, needs)


def fail(_shell: Any) -> None:
    raise BothendsError("no luck")


def test_jobs_wait_for_what_they_need_and_a_failure_stops_no_others(folder: Path) -> None:
    order: list[str] = []
    found = jobs.run_jobs(
        [
            job("broken", fail),
            job("late", lambda shell: order.append("late"), "early"),
            job("early", lambda shell: order.append("early")),
            job("hopeless", lambda shell: order.append("hopeless"), "broken"),
        ],
        2,
        jobs.RunningProcesses(),
    )
    assert order == ["early", "late"]
    assert found == {"broken": "no luck", "hopeless": "needs broken"}


def meet(barrier: threading.Barrier) -> None:
    barrier.wait()


def test_jobs_run_side_by_side(folder: Path) -> None:
    both = threading.Barrier(2, timeout=60)
    found = jobs.run_jobs(
        [job(name, lambda shell: meet(both)) for name in "ab"], 2, jobs.RunningProcesses()
    )
    assert found == {}


def test_a_failed_command_says_its_last_line(folder: Path) -> None:
    def work(shell: Any) -> None:
        shell.run([sys.executable, "-c", "import sys; print('before'); sys.exit('the reason')"])

    found = jobs.run_jobs([job("x", work)], 1, jobs.RunningProcesses())
    assert found == {"x": "the reason (all of it: x.log)"}
    assert "before" in Path("x.log").read_text()


def test_a_job_stays_locked_while_its_process_lives(folder: Path) -> None:
    """Even if the runner was killed: its training goes on, and must have no rival."""
    sleep = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    runner = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(EXPERIMENTS)!r})
from jobs import ExperimentJob, RunningProcesses, run_jobs
run = lambda shell: shell.run([sys.executable, "-c", {sleep!r}])
run_jobs([ExperimentJob("x", Path("x"), run)], 1, RunningProcesses())
"""
    with subprocess.Popen([sys.executable, "-c", runner]) as process:
        pid = int(wait_for(lambda: Path("pid").exists() and Path("pid").read_text()))
        process.kill()
    try:
        found = jobs.run_jobs([job("x", lambda shell: None)], 1, jobs.RunningProcesses())
        assert found == {"x": "another process is at work on x"}
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not jobs.run_jobs([job("x", lambda shell: None)], 1, jobs.RunningProcesses()))


@pytest.mark.slow
def test_a_stopped_reproduction_goes_on(folder: Path) -> None:
    write_recipe(updates=100_000)  # hours: it does not end before it is stopped
    (model,) = load(("ends",))
    command = [sys.executable, str(EXPERIMENTS / "run.py"), "tables/toy.yaml", "--rows", "ends"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: model_files.updates_done(model.run) or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "goes on from here" in errors
    with open("runs/.tiny-2x1.lock", "rb") as lock:  # the training has left
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    updates = model_files.updates_done(model.run)
    assert updates > 0
    write_recipe(updates=updates + 6)
    (model,) = load(("ends",))
    assert make([model])[0] == "train"
    log = [json.loads(line) for line in (model.run / "log.jsonl").read_text().splitlines()]
    trained = [record["update"] for record in log if record["kind"] == "training"]
    assert trained == sorted(set(trained))
    assert trained[-1] == updates + 6
    assert steps.is_done(model)


REFERENCES = ["a b c d e f", "g h i j k l", "m n o p q r", "s t u v w x"]


def write_test_set() -> None:
    """A test set that `pretend` translates."""
    write_lines(Path("text/toy/test.in"), list("abcd"))
    write_lines(Path("text/toy/test.out"), REFERENCES)


def pretend(model: Any, wrong: int = 0, logprob: float = -1.0, precision: str = "auto") -> None:
    """Store the results of a model as if it had been trained, and got some lines quite wrong.

    Each of them costs a quarter of the n-grams of any length, and so of BLEU.
    """
    run, bleu = model.run, 100.0 - 25 * wrong
    lines = ["1 2 3 4 5 6" if number < wrong else line for number, line in enumerate(REFERENCES)]
    (run / "checkpoints" / "update-00000006").mkdir(parents=True)
    (run / "recipe.yaml").write_text(yaml.safe_dump(model.recipe().dump()))
    metric = {"score": bleu, "interval": {"low": bleu - 1, "high": bleu + 1}}
    evaluations = []
    for setting in model_files.SETTINGS:
        figure = {**metric, "score": bleu - (setting.beam == 1)}
        settings = {name: getattr(setting, name) for name in ("precision", "beam", "deduplicated")}
        metrics = {"bleu": figure, "otem": metric}
        evaluations.append({**settings, "metrics": metrics, "signature": setting.name})
    training = {"updates": 6, "target_tokens": 1000, "commit": None, "precision": precision}
    content = {
        "training": training,
        "signatures": {"bleu": "tok:13a", "otem": "tok:13a"},
        "evaluations": evaluations,
        "recipe": model.recipe().dump(),
        "translations": {f"float32-beam{beam}": lines for beam in (4, 1)},
        "references": {"logprobs": [2 * logprob] * 4, "symbols": [2] * 4},
    }
    result_file.write_result(run, content)


def test_a_result_has_a_summary_to_read_and_lists_that_compress(folder: Path) -> None:
    lines = ["ä b", "", "c\u2028d"]
    content = {
        "name": "x",
        "recipe": {"long": "y" * 120, "empty": {}, "more": [1.5, None]},
        "translations": {"float32-beam4": lines},
        "references": {"logprobs": [-1.25, 0.0, -3e-05], "symbols": [3, 1, 2]},
    }
    first, second = folder / "first", folder / "second"
    for directory in (first, second):
        directory.mkdir()
        result_file.write_result(directory, content)
    summary = result_file.read_summary(first)
    assert summary == {"name": "x", "recipe": content["recipe"]}
    # What fits into a line is not spread over several.
    assert (first / "result.json").read_text().splitlines() == [
        "{", ' "name": "x",', ' "recipe": {', f'  "long": "{"y" * 120}",', '  "empty": {},',
        '  "more": [1.5, null]', " }", "}",
    ]  # fmt: skip
    assert result_file.read_translations(first, "float32-beam4") == lines
    assert result_file.read_references(first) == [(-1.25, 3), (0.0, 1), (-3e-05, 2)]
    # The same result gives the same files, whenever it is written.
    assert [path.name for path in result_file.result_files(first)] == [
        "float32-beam4.txt.gz", "references.tsv.gz", "result.json"
    ]  # fmt: skip
    for path in result_file.result_files(first):
        assert path.read_bytes() == (second / path.name).read_bytes()
        assert path.suffix != ".gz" or path.read_bytes()[4:8] == bytes(4), "a time is inside"


def test_kept_summaries_are_short_enough_to_read() -> None:
    for path in sorted((EXPERIMENTS / "results").glob("*/result.json")):
        assert len(path.read_text().splitlines()) < 200, path


PEER_MILLISECONDS = 25.0


def pretend_speed(table: Any, **milliseconds: float) -> None:
    """Store a benchmark: milliseconds by name of the model, and a peer's with the first one's."""
    rows = [
        {
            "name": f"runs/{name}/int8",
            "order": name.split("-")[1],
            "engine": "onnx",
            "batch": 1,
            "beam": 4,
            "milliseconds": {"median": value},
            "same_beam": {"speedup": {"median": milliseconds["tiny-1x1"] / value}},
            "paper": {"speedup": {"median": milliseconds["tiny-1x1"] / value}},
            "ctranslate2": {"speedup": {"median": PEER_MILLISECONDS / value}},
            "signature": "speed",
        }
        for name, value in milliseconds.items()
    ]
    peer = {**rows[0], "engine": "ctranslate2", "milliseconds": {"median": PEER_MILLISECONDS}}
    rows.insert(0, peer)
    path = speed.report_of(table, table.task)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"rows": rows, "notes": ["a busy machine"]}))


def test_tables_show_what_is_stored_and_what_was_not_run(folder: Path) -> None:
    write_test_set()
    rows: list[dict[str, Any]] = [
        {"name": "plain", "order": "1x1", "seeds": [1, 2], "paper": {4: {"raw": 26.9}}},
        {"name": "ends", "order": "2x1"},
        {
            "name": "four",
            "order": "2x2",
            "paper": {4: {"raw": 23, "latency": 117, "speedup": 3.31}},
        },
        {"name": "parallel", "order": "1x2"},
    ]
    names = "order raw seeds raw_difference raw_int8 distilled perplexity latency ctranslate2"
    path = write_table(
        rows,
        baseline="ends",
        columns=[*names.split(), "paper_raw", "paper_latency", "paper_speedup"],
        analyses=["grid", "pmi"],
        figure="speed",
        note="A note.",
    )
    table = table_file.load_table(path)
    first, second, ends, _, parallel = table.models()
    pretend(first, wrong=1)
    pretend(second)
    pretend(ends, wrong=1)
    pretend(parallel, wrong=3, logprob=-1.5)
    pretend_speed(table, **{"tiny-1x1": 20.0, "tiny-2x1": 10.0})
    rows[0]["seeds"] = [1]
    write_yaml(str(path), {**yaml.safe_load(path.read_text()), "rows": rows})
    assert tables.main([str(path), "--output", "pages", "--figures", "pictures", "--png"]) == 0
    page = Path("pages/toy.md").read_text()
    cells = {
        line.split(" | ")[0].removeprefix("| "): line.removesuffix(" |").split(" | ")[1:]
        for line in page.splitlines()
        if line.startswith("| ")
    }
    assert cells["ends"] == [
        "`2x1`", "75.0 (74.0 to 76.0)", "75.0", "-", "75.0", "-", "2.72", "10.0", "2.50x", *"---"
    ]  # fmt: skip
    missing = "not run"
    assert cells["four"] == ["`2x2`", *[missing] * 4, "-", *[missing] * 3, "23.0", "117", "3.31"]
    assert cells["plain"][3] == "+0.0 (+0.0 to +0.0)"
    assert cells["plain"][-3:] == ["26.9", "-", "-"]
    assert cells["parallel"][3].startswith("-50.0 (")
    assert cells["parallel"][5:8] == ["-", "4.48", missing]
    assert cells["tiny-2x1"] == ["10.0 ms, 2.00x"]
    assert cells["tiny-1x1, ctranslate2"] == ["25.0 ms"]
    assert cells["PMI, nats per symbol"][:2] == ["+0.500 (+0.500 to +0.500)", missing]
    assert "A note." in page
    assert "a busy machine" in page
    assert "Not run: `tiny-2x2`" in page
    assert "](../pictures/toy-speed.svg)" in page
    assert Path("pictures/toy-speed.png").exists()
    assert "CTranslate2, beam 4" in Path("pictures/toy-speed.svg").read_text()

    # All of it is kept: the same page comes without the runs.
    shutil.rmtree("runs")
    results.load_result.cache_clear()
    assert tables.main([str(path), "--output", "again", "--figures", "pictures"]) == 0
    assert Path("again/toy.md").read_text() == page


def test_a_kept_result_is_one_of_the_same_recipe(folder: Path) -> None:
    plain, ends = load()
    for model in (plain, ends):
        pretend(model)
    results.keep([table_file.load_table(Path("tables/toy.yaml"))])
    shutil.rmtree("runs")
    assert results.load_result(plain)
    assert run.state_of(plain) == "result kept"
    results.load_result.cache_clear()
    write_recipe(updates=7)
    assert not results.load_result(load()[0])
    write_recipe(updates=6)
    recipe = yaml.safe_load(Path("tiny.yaml").read_text())
    write_yaml("tiny.yaml", {**recipe, "loss": {"label_smoothing": 0.2}})
    assert not results.load_result(load()[1])


def test_what_was_kept_is_not_trained_again_if_only_the_missing_is_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, ends = load()
    pretend(ends)
    results.keep([table_file.load_table(Path("tables/toy.yaml"))])
    shutil.rmtree("runs")
    assert run.main(["tables/toy.yaml", "--list"]) == 0
    *states, summary = (line.strip() for line in capsys.readouterr().out.splitlines())
    assert [state.split("  ")[0] for state in states] == ["not run", "result kept"]
    assert summary == "2 models: 0 done, 1 more of which the result is kept"
    found: list[str] = []

    def run_jobs(jobs: list[Any], *_: Any) -> dict[str, str]:
        found.extend(job.name for job in jobs)
        return {}

    monkeypatch.setattr(run, "run_jobs", run_jobs)
    assert run.main(["tables/toy.yaml", "--missing"]) == 0
    assert found == ["runs/data/tiny", plain.name]
    found.clear()
    assert run.main(["tables/toy.yaml"]) == 0
    assert found == ["runs/data/tiny", plain.name, ends.name]


def test_a_raw_model_is_drawn_at_its_own_speed(folder: Path) -> None:
    path = write_table([{"name": "ends", "order": "2x1"}], data=["raw", "distilled"])
    table = table_file.load_table(path)
    pretend_speed(table, **{"tiny-1x1": 20.0, "tiny-2x1": 10.0, "tiny-2x1-distilled": 5.0})
    line = columns.Line(table, table.rows[0], 4)
    found = [line.speed(), line.speed("raw"), line.speed("distilled")]
    assert [each and each["milliseconds"]["median"] for each in found] == [5.0, 10.0, 5.0]


@pytest.mark.slow
def test_orders_may_be_timed_without_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}]
    lengths = {"source_length": 5, "target_length": 6}
    path = write_table(rows, synthetic={"shape": "tiny", **lengths}, columns=["latency", "speedup"])
    table = table_file.load_table(path)
    monkeypatch.setattr(speed, "BATCHES", (1, 2))
    (job,) = speed.jobs_of([table], rounds=1)
    job.target.parent.mkdir(parents=True)
    job.work(InThisProcess())
    plain, ends = (columns.Line(table, row, 4).speed() for row in table.rows)
    assert [plain["steps"], ends["steps"]] == [6, 3]
    assert "source=5,target=6" in ends["signature"]
    assert [columns.NOT_RUN in line for line in tables.cells_of(table).lines] == [False, False]
    # A single sentence has one core, a batch has all of them, and the page says so.
    signatures = [fact for fact in tables._facts(table) if fact.startswith("speed")]
    for signature, batch, cores in zip(signatures, (1, 2), (1, available_cores()), strict=True):
        assert signature.startswith(f"speed, batch {batch}: ")
        assert f"|batch:{batch}|" in signature
        assert f"|cores:{cores}|" in signature


def test_a_process_may_have_one_core(folder: Path) -> None:
    def work(shell: Any) -> None:
        script = "import os; print(len(os.sched_getaffinity(0)))"
        for name in ("one", "all"):
            with speed.on_one_core() if name == "one" else contextlib.nullcontext():
                shell.run([sys.executable, "-c", script], Path(name))

    assert not jobs.run_jobs([job("x", work)], 1, jobs.RunningProcesses())
    assert [Path(name).read_text() for name in ("one", "all")] == ["1\n", f"{available_cores()}\n"]


def test_reports_are_merged() -> None:
    parts = [
        {"machine": {"cores": 1}, "rounds": 5, "notes": ["busy"], "rows": [{"batch": 1}]},
        {"machine": {"cores": 2}, "rounds": 5, "notes": ["busy"], "rows": [{"batch": 32}]},
    ]
    assert speed.merge(parts) == {**parts[1], "rows": [{"batch": 1}, {"batch": 32}]}


def test_weights_are_lent_to_a_peer(folder: Path) -> None:
    plain, ends = load()
    for model in (plain, ends):
        (model.run / "int8").mkdir(parents=True)
        (model.run / "averaged").mkdir()
        (model.run / "averaged" / "model.safetensors").write_text(model.order)
        speed._lend_weights(model)
        speed._lend_weights(model)
    assert (plain.run / "int8" / "model.safetensors").read_text() == "1x1"
    assert not (ends.run / "int8" / "model.safetensors").exists()


def test_a_model_that_was_trained_on_is_not_done(folder: Path) -> None:
    (model,) = load(("plain",))
    make([model])
    assert steps.is_done(model)
    last = model_files.newest_checkpoint(model.run)
    last.rename(last.with_name("update-00000007"))
    assert not steps.is_done(model)


def test_seeds_are_averaged(folder: Path) -> None:
    write_test_set()
    rows = [
        {"name": "plain", "order": "1x1", "seeds": [1, 2]},
        {"name": "ends", "order": "2x1", "seeds": [1, 2]},
    ]
    names = ["raw", "seeds", "raw_difference", "perplexity"]
    path = write_table(rows, baseline="plain", columns=names)
    for model, wrong in zip(table_file.load_table(path).models(), (0, 1, 2), strict=False):
        pretend(model, wrong, logprob=-wrong)
    cells = tables.cells_of(table_file.load_table(path))
    assert cells.lines == (
        ("plain", "87.5 (75.0 to 100.0)", "100.0, 75.0", "-", "1.86 (1.00 to 2.72)"),
        # the second seed was not run
        ("ends", "50.0 (one seed)", "50.0, not run", "-50.0 (one seed)", "7.39 (one seed)"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": [8]}, "no bleu of float32-beam8; models are judged as float32-beam4, "),
        ({"beams": [8], "columns": ["raw_difference"]}, "no bleu of float32-beam8"),
        ({"columns": ["chrf"]}, "no chrf of float32-beam4"),
    ],
)
def test_a_figure_that_no_model_has_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], message: str
) -> None:
    write_test_set()
    path = write_table(
        [{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}], **change
    )
    for model in load():
        pretend(model)
    assert tables.main([str(path), "--output", "pages", "--figures", "pictures"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tables.py: error: tiny-1x1: {message}")


def test_a_table_without_finished_models_has_nothing_to_time(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(["tables/toy.yaml", "--speed"]) == 1
    assert capsys.readouterr().err.startswith("run.py: error: nothing to time: ")


@pytest.mark.parametrize(
    ("precisions", "command"),
    [
        (("bfloat16", "bfloat16"), "`python experiments/run.py toy --precision bfloat16`"),
        (("auto", "float32"), "`python experiments/run.py toy`"),
        (("auto", "bfloat16"), "`python experiments/run.py toy`"),
    ],
)
def test_a_page_has_the_command_that_trained_its_models(
    folder: Path, precisions: tuple[str, str], command: str
) -> None:
    for model, precision in zip(load(), precisions, strict=True):
        pretend(model, precision=precision)
    first, *_ = tables._facts(table_file.load_table(Path("tables/toy.yaml")))
    assert first == f"All 2 models were run, by {command}"


def texts_of(picture: Path) -> list[str]:
    """What is written in a drawing: letters are shapes, but each text stands in a comment."""
    return re.findall(r"<!-- +(.*?) -->", picture.read_text())


def test_bars_are_drawn_of_what_was_run(folder: Path) -> None:
    rows = [{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}]
    table = table_file.load_table(write_table(rows, figure="bars", baseline="plain"))
    draw, place = figures.FIGURES[table.figure], figures.PictureFolder(folder)
    assert draw(table, place) == []
    pretend(load()[0])
    results.load_result.cache_clear()
    (picture,) = draw(table, place)
    assert texts_of(picture)[-4:] == [
        "BLEU, 95% intervals", "plain (1x1)", "ends (2x1)", "not run"
    ]  # fmt: skip


def test_tokens_per_direction_are_drawn(folder: Path) -> None:
    rows = [{"name": order, "order": order} for order in ("1x1", "2x1", "2x2")]
    table = table_file.load_table(write_table(rows, figure="tokens", data=["raw", "distilled"]))
    draw, place = figures.FIGURES[table.figure], figures.PictureFolder(folder)
    assert draw(table, place) == []
    for model in table.models():
        pretend(model)
    results.load_result.cache_clear()
    pretend_speed(table, **{"tiny-1x1": 20.0, "tiny-2x1": 10.0, "tiny-2x2": 5.0})
    (picture,) = draw(table, place)
    texts = texts_of(picture)
    quality, otem, speedup = (
        texts.index(title)
        for title in ("BLEU", "OTEM (lower is better)", "speed-up against 1x1, same beam")
    )
    assert quality < otem < speedup
    assert texts[otem + 1 : otem + 4] == ["1", "2", "tokens per direction"]
    assert texts[speedup - 1] == "4.0"  # that of 2x2, where the axis ends
    assert texts[-4:] == ["raw", "raw, dedup", "distilled", "distilled, dedup"]


def test_a_page_shows_lengths_and_agreement(folder: Path) -> None:
    path = write_table(
        [{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}],
        analyses=["lengths", "agreement"],
    )
    table = table_file.load_table(path)
    arguments = [str(path), "--output", "pages", "--figures", "pictures"]
    assert tables.main(arguments) == 0
    page = Path("pages/toy.md").read_text()
    assert "## By length of the source\n\nnot run: `python experiments/run.py toy --speed`" in page
    assert "## Agreement of subject and verb\n\nnot run\n" in page

    plain, ends = table.models()
    pretend(plain)
    pretend(ends)
    results.load_result.cache_clear()
    pairs = make_pairs("abcd", "abcd", "abcd", [1, 1, 7, 7])
    judged = tally("model", "1x1", pairs, [True, True, True, False])
    model_files.agreement_of(plain).write_text(json.dumps(report([judged], guessed=True)))
    cell = {"score": 30.0, "interval": {"low": 20, "high": 40}, "milliseconds": 9.0, "speedup": 1.0}
    bins = [
        {"shortest": 2, "longest": longest, "sentences": 3, "cells": [cell, {**cell, "speedup": 2}]}
        for longest in (2, 5)
    ]
    names = [f"runs/{model.name}/int8" for model in (plain, ends)]
    measured = {"systems": names, "bins": bins, "beam": 4, "signature": "tok:13a"}
    lengths = speed.lengths_of(table, table.task)
    lengths.parent.mkdir()
    lengths.write_text(json.dumps(measured))
    lengths.with_suffix(".svg").write_text("a drawing")
    assert tables.main(arguments) == 0
    page = Path("pages/toy.md").read_text()
    for line in (
        "| source words | sentences "
        "| tiny-1x1 (95 %) | ms | speed-up | tiny-2x1 (95 %) | ms | speed-up |",
        "| 2 | 3 | 30.0 (20.0 to 40.0) | 9.0 | 1.00x | 30.0 (20.0 to 40.0) | 9.0 | 2.00x |",
        "| 2-5 | 3 | 30.0 (20.0 to 40.0) | 9.0 | 1.00x | 30.0 (20.0 to 40.0) | 9.0 | 2.00x |",
        "![Quality and speed-up by length](../pictures/toy-toy-lengths.svg)",
        "Beam 4, int8, one sentence at a time; tok:13a",
        "| distance | pairs | 1x1 |",
        "| 1 | 2 | 100.0 (34.2 to 100.0) |",
        "| 6-7 | 2 | 50.0 (9.5 to 90.5) |",
        "![Agreement by distance](../pictures/toy-agreement.svg)",
        "not run: `tiny-2x1`",
    ):
        assert line in page.splitlines()
    assert Path("pictures/toy-toy-lengths.svg").read_text() == "a drawing"
    assert "1x1" in texts_of(Path("pictures/toy-agreement.svg"))


def test_students_of_several_tasks_are_compared_with_their_own_teachers(folder: Path) -> None:
    write_test_set()
    write_yaml("tasks/other.yaml", TASK)
    rows: list[dict[str, Any]] = [
        {"name": "other plain", "order": "1x2", "task": "other", "data": ["raw"]},
        {"name": "plain", "order": "1x1", "data": ["raw", "distilled"]},
        {"name": "ends", "order": "2x1"},
    ]
    path = write_table(rows, data=["distilled"], columns=["distilled_from_raw"])
    other, plain, student, ends = table_file.load_table(path).models()
    for model, wrong in ((other, 3), (plain, 0), (student, 2), (ends, 0)):
        pretend(model, wrong)
    cells = tables.cells_of(table_file.load_table(path))
    differences = [difference.partition(" ")[0] for _, difference in cells.lines]
    assert differences == ["-", "-50.0", "+0.0"]


def test_models_are_compared_on_the_references_they_were_judged_by(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_table(
        [{"name": "plain", "order": "1x1"}, {"name": "ends", "order": "2x1"}],
        baseline="plain",
        columns=["raw_difference"],
    )
    for model in load():
        pretend(model)
    arguments = [str(path), "--output", "pages", "--figures", "pictures"]
    for references, message in (
        (REFERENCES[:3], "3 lines, tiny-2x1 wrote others"),
        (REFERENCES[::-1], "BLEU of tiny-1x1 is 0.00, but was 100.00 when it was judged"),
    ):
        write_test_set()
        write_lines(Path("text/toy/test.out"), references)
        assert tables.main(arguments) == 1
        assert message in capsys.readouterr().err
    write_test_set()
    assert tables.main(arguments) == 0


def test_times_of_other_weights_are_not_shown(folder: Path) -> None:
    table = table_file.load_table(Path("tables/toy.yaml"))
    pretend_speed(table, **{"tiny-1x1": 20.0, "tiny-2x1": 10.0})
    results.keep([table])
    shutil.rmtree("runs")
    line = columns.Line(table, table.rows[1], 4)
    assert line.speed()["milliseconds"]["median"] == 10
    pretend(load()[0])
    assert line.speed() is None


def test_a_table_is_timed_against_its_own_baseline(folder: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "plain", "order": "1x1"},
        {"name": "shallow", "order": "1x1", "settings": {"model.decoder_layers": 1}},
        {"name": "ends", "order": "2x1"},
    ]
    table = table_file.load_table(write_table(rows))
    plain, shallow, ends = table.models()
    for model in (shallow, ends):
        pretend(model)
    assert not speed.jobs_of([table], rounds=1)
    pretend(plain)
    assert len(speed.jobs_of([table], rounds=1)) == 1


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """What a condition gives once it holds."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found


def test_pages_explain_commits_with_uncommitted_changes() -> None:
    pages = sorted((Path(__file__).parents[1] / "docs" / "tables").glob("[0-9]*.md"))
    explained = {page.name: tables.UNCOMMITTED in page.read_text() for page in pages}
    assert explained == {page.name: "-dirty|" in page.read_text() for page in pages}
    assert any(explained.values())
