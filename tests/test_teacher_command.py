"""`bothends distill --teacher-command`: any program as a teacher, and nothing lost or shifted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.jobs.filter_process import ProgramOptions
from command_line import error_line
from corpus_data import write_lines
from line_programs import patience, program

LINES = [*(f"line {number}" for number in range(40)), "bad", "", "line 3", "bad", "  ", "end"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "text", LINES)


def arguments(text: Path, options: ProgramOptions, output: str, *more: str) -> list[str]:
    restart = ["--command-restart"] * options.restart
    return [
        *("distill", "--teacher-command", str(options), "--source", str(text)),
        *("--output", str(text.with_name(output)), "--shard-lines=7", "--processes=1"),
        *(f"--command-timeout={options.timeout}", f"--command-window={options.window}"),
        *restart,
        *more,
    ]


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit to this checkout while a test runs is none of its business."""
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")


def without_failures(text: Path, options: ProgramOptions) -> dict[str, bytes]:
    """What the program leaves if it never fails."""
    failed = Path(options.command[-1])
    failed.touch()
    assert run(arguments(text, options, "expected")) == 0
    failed.unlink()
    return content(text.with_name("expected"))


def test_a_program_writes_the_corpus(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = program(text.parent, "exit", once=True)
    found = without_failures(text, options)
    assert found["train.source"] == text.read_bytes()
    target = found["train.target"].decode().split("\n")
    assert target == [*(line.strip().upper() for line in LINES), ""]
    manifest = json.loads(found["manifest.json"])
    assert manifest["job"]["command"] == manifest["provenance"]["teacher"] == str(options)
    assert manifest["job"]["beam"] is None
    assert manifest["counts"]["kept"] == len(LINES)
    assert f"{options} translates 46 of 46 lines, 1 process" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["exit", "killed", "hang", "two lines", "no line"])
@pytest.mark.parametrize("restart", [False, True], ids=["kept", "restarted"])
def test_failures_leave_no_trace(
    text: Path,
    how: str,
    restart: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bothends.jobs.filter_process.GRACE", 0.5)
    timeout = patience() if how == "hang" else 600
    options = program(text.parent, how, once=True, timeout=timeout, restart=restart)
    expected = without_failures(text, options)
    assert "attempt" not in capsys.readouterr().err
    assert run(arguments(text, options, "output")) == 0
    assert "attempt 2 of 3" in capsys.readouterr().err
    assert content(text.with_name("output")) == expected


def test_two_processes_write_the_same(text: Path) -> None:
    options = program(text.parent, "exit", once=True)
    expected = without_failures(text, options)
    assert run(arguments(text, options, "output", "--processes=2", "--command-window=3")) == 0
    assert content(text.with_name("output")) == expected


#: Takes its time, and notes its process and its parent's.
SLOW = """
import os, sys, time
open(f"{sys.argv[1]}/{os.getpid()}-{os.getppid()}", "w").close()
for line in sys.stdin:
    time.sleep(0.01)
    print(line.upper(), end="", flush=True)
"""


def wait_for(what: Callable[[], object]) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit, "it did not happen in two minutes"
        time.sleep(0.01)


def is_running(process: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
@pytest.mark.parametrize("victim", ["program", "worker", "first process"])
def test_killed_for_real_it_arrives_at_the_same(tmp_path: Path, victim: str) -> None:
    text = write_lines(tmp_path / "text", [f"line {number}" for number in range(400)])
    (tmp_path / "slow.py").write_text(SLOW)
    notes = tmp_path / "notes"
    notes.mkdir()
    command = ProgramOptions((sys.executable, str(tmp_path / "slow.py"), str(notes)), window=5)
    distill = [sys.executable, "-m", "bothends", *arguments(text, command, "output")]
    distill += ["--processes=2", "--shard-lines=10"]
    with subprocess.Popen(distill, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: len(list(tmp_path.glob("output/shards/*.jsonl"))) >= 4)
            child, worker = map(int, next(notes.iterdir()).name.split("-"))
            victims = {"program": child, "worker": worker, "first process": process.pid}
            os.kill(victims[victim], signal.SIGKILL)
            said = process.communicate()[1]
        finally:
            process.kill()
    if victim == "first process":
        assert process.returncode == -signal.SIGKILL
        assert run(distill[3:]) == 0
    else:
        assert process.returncode == 0, said
        signalled = "ended by signal 9" if victim == "program" else "ended with status -9"
        assert signalled in said
        assert "attempt 2 of 3" in said
    wait_for(lambda: not any(is_running(int(path.name.split("-")[0])) for path in notes.iterdir()))
    target = (tmp_path / "output" / "train.target").read_text().split("\n")
    assert target == [*(f"LINE {number}" for number in range(400)), ""]


def test_a_line_that_always_fails_is_named(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(text, program(text.parent, "exit"), "output")) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("bothends: error: ")
    assert "its last words: 'a loud program / I cannot do this'" in error
    assert error.endswith("it fails at this line alone: 'bad'")


def test_another_program_or_version_is_another_job(
    text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = program(text.parent)
    assert run(arguments(text, options, "output", "--teacher-version", "1.0")) == 0
    manifest = json.loads(text.with_name("output").joinpath("manifest.json").read_text())
    assert manifest["provenance"]["teacher_version"] == "1.0"
    capsys.readouterr()
    status, message = error_line(
        arguments(text, options, "output", "--teacher-version", "1.1"), capsys
    )
    assert (status, "another job (teacher version '1.0', not '1.1')" in message) == (1, True)
    other = program(text.parent, "another")
    status, message = error_line(arguments(text, other, "output"), capsys)
    assert (status, "another job (teacher command " in message) == (1, True)
    # Timeouts and windows are no part of the job.
    more = ["--teacher-version", "1.0", "--command-timeout=9", "--command-window=2"]
    assert run(arguments(text, options, "output", *more)) == 0


def test_filters_work_on_what_is_known(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filters = ["--drop-empty", "--max-ratio=3", "--drop-repetitions"]
    assert run(arguments(text, program(text.parent), "output", *filters)) == 0
    assert "44 pairs kept\n  dropped: 2 with an empty side, 0 with more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--teacher=somebody"], "somebody: no such model directory"),
        (["--min-score=-1"], "--min-score needs log probabilities"),
        (["--command-timeout=0"], "the timeout must be positive"),
        (["--command-timeout=nan"], "the timeout must be positive"),
        (["--command-timeout=1e300"], "the timeout must be positive"),
        (["--teacher-command=/no/program"], "/no/program: cannot be run"),
        (["--teacher-command="], "the command is empty"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    text: Path, more: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments(text, program(text.parent), "output", *more)) != 0
    assert expected in capsys.readouterr().err.splitlines()[-1]


def test_a_teacher_is_needed(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["distill", "--source", str(text), "--output", str(text.with_name("output"))]
    assert error_line(command, capsys) == (
        2,
        "no teacher: give --teacher DIR or --teacher-command CMD",
    )
