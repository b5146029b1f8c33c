"""The command line's surface, for every command: help, versions, error lines, what is imported."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import bothends
from bothends.cli import app, run
from command_line import error_line, python

COMMANDS = sorted(
    command.name or command.callback.__name__
    for command in app.registered_commands
    if command.callback is not None
)
#: What takes long to load; none of it is needed to read a command line.
HEAVY = ["torch", "onnxruntime", "onnx", "transformers", "matplotlib", "sacrebleu", "ctranslate2"]


def test_the_commands_are_those_of_the_design() -> None:
    assert set(COMMANDS) >= {"order", "prepare", "train", "export", "translate", "score", "bench"}


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(
    command: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, flag]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"Usage: bothends {command} ")
    # A sentence says what it does, and every option says what it is for.
    assert re.search(r"^  [A-Z][^\n]{10,}", captured.out, re.MULTILINE)
    for option in re.findall(r"^  (?:-\w, )?--[^\n]*(?:\n {10,}[^\n]*)*", captured.out, re.M):
        assert re.search(r" {2}\S", option), f"{command} does not explain {option!r}"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    listed = re.findall(r"^  ([a-z]+) {2}", captured.out.partition("Commands:")[2], re.MULTILINE)
    assert sorted(listed) == COMMANDS


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"bothends {bothends.__version__}\n"


def test_the_module_is_the_command() -> None:
    result = python("-m", "bothends", "--version")
    assert (result.returncode, result.stdout) == (0, f"bothends {bothends.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ordr"], "No such command 'ordr'. Did you mean 'order'?"),
        (["1234"], "No such command '1234'."),
        (["--colour"], "No such option: --colour"),
        (["order"], "Missing argument 'ORDER'."),
    ],
)
def test_a_misspelled_command_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_line(arguments, capsys) == (2, message)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, message = error_line([command, "--no-such-option"], capsys)
    assert status == 2
    assert "--no-such-option" in message


def test_the_process_exits_with_the_status_and_no_traceback() -> None:
    result = python("-m", "bothends", "order", "3x1")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("bothends: error: bad generation order 3x1: ")
    assert result.stderr.count("\n") == 1


def test_an_interrupt_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bothends.drawing.draw_text", interrupt)
    assert run(["order", "2x1"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "bothends", "order", "1x1", "--length", "200"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # as `head` does, before anything was written
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def loaded(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has after running `code`."""
    result = python("-c", f"{code}\nimport sys\nprint(*set({HEAVY}) & set(sys.modules))")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


def test_the_package_and_every_help_load_nothing_heavy() -> None:
    calls = "\n".join(f"assert run([{name!r}, '--help']) == 0" for name in COMMANDS)
    assert loaded(f"import bothends\nfrom bothends.cli import run\n{calls}") == set()


def test_drawing_an_order_loads_nothing_heavy() -> None:
    assert loaded("from bothends.cli import run\nassert run(['order', '4x1']) == 0") == set()


def test_the_check_for_heavy_modules_can_fail() -> None:
    assert loaded("import onnxruntime") == {"onnxruntime"}
