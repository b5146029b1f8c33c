"""`evaluate --command` and `bench --command`: a program of others in the same tables as models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bothends.cli import run
from bothends.evaluation.bench.programs import short_name
from bothends.jobs.filter_process import ProgramOptions
from bothends.jobs.line_program import GUARD
from command_line import error_line
from corpus_data import write_lines
from line_programs import program
from tiny_model import sentences, tiny_model


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Text that is right if it is in capitals."""
    lines = sentences(12, 1)
    write_lines(tmp_path / "reference", [line.upper() for line in lines])
    return write_lines(tmp_path / "source", lines)


def arguments(command: str, text: Path, program: str, *more: str) -> list[str]:
    paths = ["--source", str(text), "--reference", str(text.with_name("reference"))]
    return [command, "--command", program, *paths, *more]


def bench(text: Path, program: str, *more: str) -> dict[str, Any]:
    output = text.with_name("report.json")
    options = ["--peers=none", "--repeat=1", "--json", str(output), *more]
    assert run(arguments("bench", text, program, *options)) == 0
    report: dict[str, Any] = json.loads(output.read_bytes())
    return report


@pytest.mark.parametrize("restart", [False, True])
def test_a_program_is_evaluated_with_models(
    text: Path, restart: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    command = str(program(text.parent, "needs all" if restart else "well"))
    outputs = [str(text.with_name(name)) for name in ("model", "program")]
    more = ["--model", str(tiny_model("2x1")), "--output", *outputs, "--bootstrap=50"]
    more += ["--json", str(text.with_name("json")), "--command-window=5"]
    more += ["--command-restart"] * restart
    assert run(arguments("evaluate", text, command, *more)) == 0
    model, other = json.loads(text.with_name("json").read_bytes())["systems"]
    assert (model["name"], other["name"]) == (str(tiny_model("2x1")), command)
    assert other["figures"]["bleu"]["score"] == pytest.approx(100)
    assert model["figures"]["bleu"]["score"] < 50
    assert text.with_name("program").read_bytes() == text.with_name("reference").read_bytes()
    assert "bleu" in capsys.readouterr().out.lower()


def test_a_program_is_timed_with_models(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = text.with_name("slow.py")
    slow.write_text(
        "import sys, time\nfor line in sys.stdin:\n    time.sleep(0.02)\n"
        "    print(line, end='', file=open(sys.argv[1], 'a'))\n"
        "    print(line.upper(), end='', flush=True)\n"
    )
    command = f"{sys.executable} {slow} {text.with_name('read')}"
    more = ["--model", str(tiny_model("1x1")), "--batch=1,4", "--beam=1,2"]
    more += ["--picture", str(text.with_name("picture.svg"))]
    report = bench(text, command, *more)
    rows = [row for row in report["rows"] if row["engine"] == "program"]
    assert [(row["batch"], row["beam"], row["threads"]) for row in rows] == [
        (1, 0, "its own"),
        (4, 0, "its own"),
    ]
    for row in rows:
        assert row["milliseconds"]["median"] >= 20
        assert row["bleu"] == pytest.approx(100)
        assert (row["tokens_per_second"], row["steps"], row["cpu_milliseconds"]) == (None,) * 3
    assert len(report["rows"]) == 6
    assert text.with_name("picture.svg").exists()
    # Lines that check the program come before and after what is timed.
    guards = [line == GUARD for line in text.with_name("read").read_text().splitlines()]
    assert guards.count(True) == 4
    assert not any(guards[3:-1])
    table = capsys.readouterr().out
    (line,) = [line for line in table.splitlines() if "slow.py" in line and " 4 " in line]
    assert " - " in line


def test_a_program_alone_is_timed(text: Path) -> None:
    report = bench(text, str(program(text.parent)), "--batch=3")
    assert [row["engine"] for row in report["rows"]] == ["program"]
    assert "|beam:0|batch:3|engine:program|" in report["rows"][0]["signature"]


def test_a_program_out_of_step_is_not_timed(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(text, [*sentences(8, 2), "bad"])
    write_lines(text.with_name("reference"), ["x"] * 9)
    command = str(program(text.parent, "two lines"))
    options = ["--peers=none", "--repeat=1", "--batch=1"]
    assert run(arguments("bench", text, command, *options)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "wrote more or fewer than one line" in captured.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "--command", "cat", "--reference", "x"], "--command needs --source FILE"),
        (["bench", "--command", "cat"], "--command needs --source FILE"),
        (["bench"], "nothing to measure"),
        (["bench", "--command=cat", "--source=x", "--picture=x.svg"], "--picture draws speed-ups"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, message = error_line(words, capsys)
    assert (status, expected in message) == (2, True), message


def test_a_program_has_a_short_name() -> None:
    assert short_name(ProgramOptions(("/usr/bin/python3", "a/teacher.py"))) == "python3 teacher.py"
    assert len(short_name(ProgramOptions(("x" * 99,)))) == 40
