"""What the README and the page on orders show is true: commands, output, tables, links.

The language of a fenced block says what is checked:

    console   every `$` line is run, and what follows it must be its output
    sh        needs data or time, so it is not run: commands, options and make targets must exist
    python    a session, run as a doctest
    yaml      a recipe, which must be valid
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

from bothends.cli import app, run
from bothends.order import GenerationOrder

ROOT = Path(__file__).parents[1]
PAGES = [Path("README.md"), Path("docs/orders.md"), Path("docs/fill.md")]


def blocks(language: str) -> list[str]:
    """The fenced blocks of all pages that are in this language."""
    found = [
        match[1]
        for page in PAGES
        for match in re.finditer(
            rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S
        )
    ]
    assert found, f"no page has a block of {language}"
    return found


def shown_commands() -> list[list[str]]:
    return [
        words
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if (words := _words(line))
    ]


def _words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def test_every_block_says_how_it_is_checked() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert set(fences[::2]) <= {"console", "sh", "python", "yaml", "bibtex"}, page


@pytest.mark.parametrize("session", blocks("console"))
def test_a_console_shows_what_the_command_prints(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        program, *arguments = _words(line)
        assert program == "bothends"
        assert run(arguments) == 0
        assert capsys.readouterr().out == shown


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_a_shown_command_exists(words: list[str]) -> None:
    if words[0] == "echo":  # text for a command to read
        words = words[words.index("|") + 1 :]
    program, *arguments = words
    if program == "make":
        makefile = (ROOT / "Makefile").read_text("utf-8")
        for target in arguments:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    elif program == "pip":
        project = (ROOT / "pyproject.toml").read_text("utf-8")
        extras = ",".join(re.findall(r"\[(.*)\]", " ".join(arguments)))
        for extra in filter(None, extras.split(",")):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    else:
        assert program == "bothends"
        redirected = next((i for i, word in enumerate(arguments) if word in "<>|"), None)
        name, *options = arguments[:redirected]
        # Parsing complains of unknown options, missing ones and bad values; nothing is run.
        commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        commands[name].make_context(name, options)


@pytest.mark.parametrize("session", blocks("python"))
def test_a_python_session_runs_as_shown(session: str) -> None:
    parsed = doctest.DocTestParser().get_doctest(session, {}, "session", None, None)
    assert parsed.examples
    outcome = doctest.DocTestRunner().run(parsed)
    assert outcome.failed == 0


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_recipe_is_valid(text: str, tmp_path: Path) -> None:
    from bothends.training.recipe_file import load_recipe

    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    load_recipe(path)


@pytest.mark.parametrize("page", PAGES[:2], ids=str)
def test_tables_of_orders_have_the_right_steps(page: Path) -> None:
    rows = re.findall(r"^\| `(\d+x\d+)` \|(.*)\|$", (ROOT / page).read_text("utf-8"), re.M)
    assert len(rows) >= 5
    for name, cells in rows:
        order = GenerationOrder.parse(name)
        figures = re.findall(r"\| (\d+) (?=\||$)", f"| {name} |{cells}")
        assert str(order.steps(30)) in figures
        if len(figures) == 2:
            assert figures == [str(order.block_size), str(order.steps(30))]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert local
    for link in local:
        assert ((ROOT / page).parent / link).exists(), f"{page} links to {link}"


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^  make (\S+) +(\S.*)$", done.stdout, re.MULTILINE))
    assert list(listed) == phony.split()


def test_all_files_name_the_same_repository() -> None:
    found = {
        name: re.findall(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
        for name, pattern in {
            "pyproject.toml": r'^Repository = "(.*)"$',
            "CITATION.cff": r"^repository-code: (.*)$",
            "mkdocs.yml": r"^repo_url: (.*)$",
        }.items()
    }
    ((address,),) = {tuple(addresses) for addresses in found.values()}
    assert address.startswith("https://")
