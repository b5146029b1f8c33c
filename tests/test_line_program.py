"""Programs that read lines and write one for each: whatever they do, no line is out of place."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bothends.errors import BothendsError, UsageError
from bothends.jobs import filter_process, line_program
from bothends.jobs.filter_process import ProgramError, ProgramOptions
from bothends.jobs.line_program import GUARD, LineProgram
from line_programs import patience, program

LINES = ["one", "two", "", "three", "bad", "four", "  ", "five", "six", "seven", "eight", "nine"]
ANSWERS = [line.strip().upper() for line in LINES]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_process, "GRACE", 0.5)


def translate(options: ProgramOptions, lines: list[str] = LINES) -> tuple[list[str], list[str]]:
    """The answers, and what was reported meanwhile."""
    reports: list[str] = []
    with LineProgram(options, reports.append) as running:
        return running.translate(lines), reports


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("window", [1, 4, 256])
def test_line_n_answers_line_n(tmp_path: Path, window: int, restart: bool) -> None:
    assert translate(program(tmp_path, window=window, restart=restart)) == (ANSWERS, [])
    assert translate(program(tmp_path, restart=restart), [""]) == ([""], [])
    assert translate(program(tmp_path, restart=restart), []) == ([], [])


@pytest.mark.parametrize("restart", [False, True], ids=["kept", "restarted"])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("exit", "ended with status 1 after"),
        ("killed", "ended by signal 9 after"),
        ("hang", "no line for {timeout:g} seconds after"),
        ("two lines", "more"),
        ("no line", "after"),
        ("bytes", "wrote a line that is not UTF-8 (byte 0xff)"),
        ("endless", "wrote a line of more than"),
    ],
)
def test_a_failure_costs_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, expected: str, restart: bool
) -> None:
    timeout = patience() if how == "hang" else 600
    if how == "no line":  # for the guard, which comes too early
        monkeypatch.setattr("bothends.jobs.filter_process.GRACE", patience())
    options = program(tmp_path, how, once=True, timeout=timeout, restart=restart)
    answers, reports = translate(options)
    assert answers == ANSWERS
    assert len(reports) == 1
    assert expected.format(timeout=timeout) in reports[0]
    assert reports[0].endswith("attempt 2 of 3")
    assert "its last words: '" in reports[0]


@pytest.mark.parametrize("restart", [False, True], ids=["kept", "restarted"])
@pytest.mark.parametrize("how", ["exit", "two lines", "no line", "bytes"])
def test_a_line_that_always_fails_is_found(tmp_path: Path, how: str, restart: bool) -> None:
    lines = [*map(str, range(30)), "bad", *map(str, range(30, 40))]
    with pytest.raises(ProgramError, match="it fails at this line alone: 'bad'") as raised:
        translate(program(tmp_path, how, window=16, restart=restart), lines)
    assert "a loud program" in str(raised.value)


def test_the_last_words_are_told(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="its last words: 'a loud program / I cannot do this'"):
        translate(program(tmp_path, "exit"))


def test_the_line_that_hangs_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="the first line without an answer: 'bad'"):
        translate(program(tmp_path, "hang", timeout=patience()))


def test_a_program_that_hangs_at_the_end_of_a_window_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=f"the first line without an answer: '{GUARD}'"):
        translate(program(tmp_path, "hang later", timeout=patience()), ["one", "bad"])


def test_a_program_that_does_not_start_is_not_asked_for_the_line(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"ended with status 1 .*no such model'$"):
        translate(program(tmp_path, "never starts"))


def test_output_at_the_end_of_input_needs_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_program, "_PATIENCE", 0.1)
    options = program(tmp_path, "needs all", timeout=1)
    reports: list[str] = []
    with (
        LineProgram(options, reports.append) as running,
        pytest.raises(BothendsError, match=r"no line for 1 seconds .* needs --command-restart"),
    ):
        running.translate(LINES)
    assert len(reports) == 1
    assert "no answer yet; a program must write and flush a line" in reports[0]
    assert translate(program(tmp_path, "needs all", restart=True)) == (ANSWERS, [])


@pytest.mark.parametrize(("how", "said"), [("banner", "'Loading ...'"), ("varies", f"'0 {GUARD}'")])
def test_what_cannot_be_checked_is_refused(tmp_path: Path, how: str, said: str) -> None:
    with pytest.raises(BothendsError, match=f"answered the line '{GUARD}' by {said} and then"):
        translate(program(tmp_path, how))


@pytest.mark.parametrize("how", ["well", "needs all", "loud"])
def test_full_pipes_block_nobody(tmp_path: Path, how: str) -> None:
    """Far more than a pipe holds goes in, out, and to stderr."""
    lines = ["bad", *(f"{number} " + "x" * 50_000 for number in range(100))]
    options = program(tmp_path, how, window=64, restart=how == "needs all")
    answers, reports = translate(options, lines)
    assert answers == [line.upper() for line in lines]
    assert reports == []


def test_characters_that_programs_take_for_line_ends_are_spaces(tmp_path: Path) -> None:
    lines = ["a\rb", "a\u2028b", "a\x0bb\x0cc", "a\x85b", "ü\u00a0ß"]
    answers, reports = translate(program(tmp_path), lines)
    assert answers == ["A B", "A B", "A B C", "A B", "Ü\u00a0SS"]
    assert reports == []


def test_a_program_ends_with_its_user(tmp_path: Path) -> None:
    script = "import os, sys\nopen(sys.argv[1], 'w').write(str(os.getpid()))\n"
    script += "for line in sys.stdin: print(line, end='', flush=True)\n"
    (tmp_path / "echo.py").write_text(script)
    for restart in (False, True):
        options = ProgramOptions(
            (sys.executable, str(tmp_path / "echo.py"), str(tmp_path / "pid")), restart=restart
        )
        assert translate(options, ["x"])[0] == ["x"]
        pid = (tmp_path / "pid").read_text()
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("window", [3, 4, 5])
def test_a_missing_line_does_not_take_the_whole_timeout(tmp_path: Path, window: int) -> None:
    begin = time.monotonic()
    options = program(tmp_path, "no line", once=True, timeout=600, window=window)
    assert translate(options)[0] == ANSWERS
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("", "the command is empty"),
        ("say 'hello", "No closing quotation"),
        ("/nowhere/at/all x", "/nowhere/at/all: cannot be run"),
    ],
)
def test_a_wrong_command_is_told(command: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        translate(ProgramOptions.parse(command))


def test_there_is_no_shell_unless_one_is_asked_for(tmp_path: Path) -> None:
    lines = ["a; b", "$HOME"]
    assert translate(ProgramOptions.parse("cat"), lines)[0] == lines
    shell = ProgramOptions.parse("sh -c 'tr a-z A-Z | cat'", restart=True)
    assert translate(shell, lines)[0] == ["A; B", "$HOME"]


@pytest.mark.parametrize(("option", "value"), [("timeout", 0), ("window", 0)])
def test_impossible_settings_are_refused(option: str, value: int) -> None:
    with pytest.raises(UsageError, match=option):
        ProgramOptions(("cat",), **{option: value})  # type: ignore[arg-type]
