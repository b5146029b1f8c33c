"""Plain translations start without the parser of all commands, and are the same as with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bothends.cli import run
from bothends.engines.native import is_built
from bothends.quick import plain_translation
from tiny_model import sentences, tiny_model


@pytest.mark.parametrize(
    "line",
    [
        "translate",
        "translate lines",
        "translate --model m --beam 2 lines other",
        "translate lines --model=m --engine native",
    ],
)
def test_plain_options_are_understood(line: str) -> None:
    assert plain_translation(line.split()) is not None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--help",
        "summarize --model m",
        "translate --help",
        "translate -h",
        "translate page.md",
        "translate *",
        "translate --",
        "translate -",
        "translate --json",
        "translate --beam",
        "translate --beam 0",
        "translate --beam four",
        "translate --beam=-1",
        "translate --model",
        "translate --model --beam",
        "translate --model a --model b",
        "translate --engine torch",
        "translate --engine=none",
        "translate --no-shortlist",
        "translate --unknown 1",
        "translate --model=",
        "translate --engine=",
        f"translate --beam {'1' * 5000}",
    ],
)
def test_everything_else_is_left_to_the_parser(line: str) -> None:
    assert plain_translation(line.split()) is None


#: What a plain translation must not wait for, itself or what it brings along.
HEAVY = {"typer", "onnxruntime", "torch", "yaml", "bothends.filling"}
HEAVY |= {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def program(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, which names some of its modules at the end."""
    watch = (
        "import atexit, sys; sys.argv = ['bothends', *sys.argv[1:]]\n"
        f"heavy = {HEAVY}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "from bothends.__main__ import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", watch, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not is_built(), reason="the native engine is not built")
def test_a_plain_translation_is_that_of_the_command_and_loads_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, lines = str(tiny_model("2x1", "int8")), sentences(5, seed=3)
    text = "".join(f"{line}\n" for line in lines)
    (tmp_path / "lines").write_text(text, encoding="utf-8")
    # The length penalty is its default, but a word that only the parser understands.
    file = str(tmp_path / "lines")
    assert run(["translate", "--model", model, "--length-penalty", "0.6", file]) == 0
    expected = capsys.readouterr().out
    plain = program("translate", "--model", model, text=text)
    assert (plain.stdout, plain.stderr, plain.returncode) == (expected, "[]\n", 0)


def test_errors_are_one_line_here_too(tmp_path: Path) -> None:
    missing = program("translate", "--model", str(tmp_path / "none"))
    assert missing.returncode == 1
    assert missing.stderr.startswith("bothends: error: ")
    wide = program("translate", "--beam", "9999", "--model", str(tiny_model("2x1", "int8")))
    assert (wide.returncode, wide.stdout) == (2, "")
    assert "at most 256" in wide.stderr.splitlines()[0]
