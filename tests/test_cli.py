"""The command line's surface, for every command: help, versions, error lines, what is imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer

import bothends
from bothends.cli import app, run, spell_options
from bothends.model.bundled import BUNDLED, DEFAULT_MODEL
from command_line import error_line, python


def names(group: typer.Typer) -> list[str]:
    return [
        command.name or command.callback.__name__
        for command in group.registered_commands
        if command.callback is not None
    ]


#: Groups of commands, by name: `analyse`.
GROUPS = {
    group.name: names(group.typer_instance)
    for group in app.registered_groups
    if group.name and group.typer_instance
}
COMMANDS = sorted(
    [*names(app), *(f"{group} {name}" for group, found in GROUPS.items() for name in found)]
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
    assert run([*command.split(), flag]) == 0
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
    commands = captured.out.partition("Commands:")[2]
    assert sorted(re.findall(r"^  ([a-z]+) {2}", commands, re.MULTILINE)) == sorted(
        [*names(app), *GROUPS]
    )
    assert "..." not in commands, "a description is cut off"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    version, native = capsys.readouterr().out.splitlines()
    assert version == f"bothends {bothends.__version__}"
    assert native.startswith("native engine: ")


def test_the_module_is_the_command() -> None:
    result = python("-m", "bothends", "--version")
    assert result.returncode == 0
    assert result.stdout.startswith(f"bothends {bothends.__version__}\n")


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
    status, message = error_line([*command.split(), "--no-such-option"], capsys)
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


def test_an_interrupt_while_packages_are_imported_is_quiet() -> None:
    program = """if True:
        import os, signal, sys, time

        class Interrupted:  # while it looks for the first package behind the command line
            def find_spec(self, name, *_):
                if name == "bothends.cli":
                    try:
                        os.kill(os.getpid(), signal.SIGINT)
                        time.sleep(10)
                    except KeyboardInterrupt:
                        raise ImportError("as if something else were wrong")

        sys.meta_path.insert(0, Interrupted())
        from bothends.__main__ import main
        main()
    """
    result = python("-c", program)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "moment",
    [
        "bothends.cli.run = interrupt",  # after the imports, before the command
        "import atexit; atexit.register(interrupt)",  # while Python ends
    ],
)
def test_an_interrupt_before_and_after_the_command_is_quiet(moment: str) -> None:
    program = f"""if True:
        import os, signal, sys, time
        import bothends.cli
        from bothends.__main__ import main

        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

        sys.argv = ["bothends", "order", "2x1"]
        sys.stdout = open(os.devnull, "w")
        {moment}
        main()
    """
    result = python("-c", program)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_an_ignored_interrupt_stays_ignored() -> None:
    program = "trap '' INT; exec {} -m bothends order 2x1 & sleep 0.2; kill -INT $!; wait $!"
    result = subprocess.run(
        ["sh", "-c", program.format(sys.executable)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("3 GiB for an array"), "not enough memory: 3 GiB for an array"),
    ],
)
def test_too_little_memory_is_told_in_one_line(
    error: MemoryError,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("bothends.drawing.draw_text", Mock(side_effect=error))
    assert error_line(["order", "2x1"], capsys) == (1, message)


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


@pytest.mark.parametrize("arguments", [["order", "2x1"], ["translate"]])
def test_a_full_disk_is_told_in_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "bothends", *arguments],
            input="I am hungry.\n",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (
        1,
        "bothends: error: output: No space left on device\n",
    )


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m bothends {command}"
    return subprocess.run(
        ["sh", "-c", command], input="I am hungry.\n", capture_output=True, text=True, check=False
    )


def test_a_closed_stderr_is_not_mistaken_for_stdout() -> None:
    result = in_shell("translate --format lines --max-source-length 1 2>&-")  # which warns
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize("command", ["translate", "order 2x1", "--version"])
def test_a_closed_stdout_is_an_error(command: str) -> None:
    result = in_shell(f"{command} >&-")
    assert (result.returncode, result.stdout, result.stderr) == (
        1,
        "",
        "bothends: error: standard output is closed: nobody can read the result\n",
    )


def test_a_closed_stdout_is_none_where_nothing_is_written_to_it(tmp_path: Path) -> None:
    result = in_shell(f"translate --output {tmp_path / 'out'} >&-")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "out").read_text() == "Estou com fome.\n"


def test_what_the_shell_feeds_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("I am hungry.\n")
    result = in_shell(f"translate --output {path} <{path}")
    message = f"bothends: error: --output {path}: is an input, too; write to another file\n"
    assert (result.returncode, result.stderr) == (1, message)
    assert path.read_text() == "I am hungry.\n"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("n_best must not exceed the beam: 9", "--n-best must not exceed the beam: 9"),
        (
            "min_length 9 is greater than max_length 3",
            "--min-length 9 is greater than --max-length 3",
        ),
        ("beam 300: at most 256", "--beam 300: at most 256"),
        ("threads must be at least 1", "--threads must be at least 1"),
        ("runs/n_best.txt: no such file", "runs/n_best.txt: no such file"),
        ("validation.length_penalty: no", "validation.length_penalty: no"),
        ("prepared: made with another max_length", "prepared: made with another max_length"),
    ],
)
def test_options_are_spelled_as_on_the_command_line(message: str, expected: str) -> None:
    assert spell_options(message) == expected


def test_options_that_were_given_are_spelled_so_too() -> None:
    given = ["fill", "--min-words", "5", "--max-ratio=0", "--rate", "0", "--[_", "text_x"]
    words = spell_options("min_words 5 is more than max_words 2", given)
    assert words == "--min-words 5 is more than --max-words 2"
    ratio = spell_options("max_ratio: Input should be greater than 0", given)
    assert ratio == "--max-ratio: Input should be greater than 0"
    assert spell_options("rate: expected more than 0", given) == "--rate: expected more than 0"
    assert spell_options("rate: no such file", given) == "rate: no such file"


@pytest.fixture
def text_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file `text` of one line in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "text"
    path.write_text("a\n")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "--reference", "text", "--hypothesis", "text"],
        ["bench", "--synthetic", "tiny:1x1"],
        ["analyse", "lengths", "--source", "text", "--reference", "text", "--hypothesis", "text"],
        ["analyse", "pmi", "--model", "en-pt-2x1", "--source", "text", "--target", "text"],
    ],
)
def test_a_file_that_cannot_be_written_is_noticed_before_the_work(
    arguments: list[str], text_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, reason in (
        (".", "is a directory"),
        ("text/x", "text is not a directory that can be written to"),
    ):
        status, message = error_line([*arguments, "--json", path], capsys)
        assert status == 1
        assert message.startswith(f"--json {path}: {reason}")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("evaluate --model en-pt-2x1 --source text --reference text", "--output"),
        ("analyse lengths --model en-pt-2x1 --source text --reference text", "--json"),
        ("analyse pmi --model en-pt-2x1 --source text --target text", "--json"),
        (
            "analyse agreement --model en-pt-2x1 --source text --correct text --incorrect text",
            "--json",
        ),
    ],
)
def test_what_is_read_is_not_replaced(
    arguments: str, option: str, text_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(text_here.parent / "." / "text")
    found = error_line([*arguments.split(), option, path], capsys)
    assert found == (1, f"{option} {path}: is an input, too; write to another file")
    assert Path("text").read_text() == "a\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "splice --source text --lines 1 --output",
        "translate text --output",
        "translate text --workers 1 --output",
        "evaluate --hypothesis text --reference text --json",
        f"evaluate --model {DEFAULT_MODEL} --source text --reference text --output",
        "order 2x1 --svg",
        "fill --source a --svg",
    ],
)
def test_the_directory_of_a_file_is_not_made(
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One rule for all commands: a misspelled directory does not come into being."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\n")
    found = error_line([*arguments.split(), "none/new"], capsys)
    option = arguments.split()[-1]
    assert found == (1, f"{option} none/new: none is not a directory that can be written to")
    assert not Path("none").exists()


def test_an_output_is_not_compressed_as_its_name_would_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.gz"
    found = error_line(["translate", "--output", str(path)], capsys)
    assert found == (1, f"--output {path}: output is not compressed; choose a name without .gz")


@pytest.mark.parametrize("name", ["mödel", os.fsdecode(b"\xff")])
def test_any_name_can_be_printed(name: str, tmp_path: Path) -> None:
    """Whatever the terminal's encoding: `verify` prints the name of a directory."""
    shutil.copytree(BUNDLED / DEFAULT_MODEL, tmp_path / name)
    result = python("-m", "bothends", "verify", str(tmp_path / name), PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{tmp_path}/")


def test_outputs_do_not_replace_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\n")
    models = "evaluate --model en-pt-1x1 en-pt-2x1 --source text --reference text --output"
    found = error_line([*models.split(), "x", "./x"], capsys)
    assert found == (1, "--output x: is another output, too; name a different file")
    # A device may be named twice, and need not be in a directory that one may write to.
    discarded = f"{models} /dev/null /dev/null --beam 1 --bootstrap 0 --json /dev/null"
    assert run(discarded.split()) == 0


def test_a_file_in_the_place_of_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    arguments = ["splice", "--source", "text", "--lines", "1"]
    found = error_line([*arguments, "--output", str(tmp_path / "file" / "text")], capsys)
    path = tmp_path / "file"
    assert found == (
        1,
        f"--output {path / 'text'}: {path} is not a directory that can be written to",
    )


def test_the_box_has_no_model_that_summarises(capsys: pytest.CaptureFixture[str]) -> None:
    status, message = error_line(["summarize"], capsys)
    assert (status, message) == (2, "no bundled model summarises: name one with --model DIR")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["export", "en-pt-2x1"],
            "en-pt-2x1: a bundled model can only translate, its weights are not in the package; "
            "name a model directory of yours",
        ),
    ],
)
def test_a_bundled_model_has_no_weights(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_line(arguments, capsys) == (1, message)


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ("verify --record", "record a directory of yours"),
        ("shortlist --source text --target text --model", "copy its directory, and name the copy"),
    ],
)
def test_a_bundled_model_is_not_changed(
    arguments: str, instead: str, text_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = error_line([*arguments.split(), DEFAULT_MODEL], capsys)
    reason = "a bundled model stays as it is in the package"
    assert found == (2, f"{DEFAULT_MODEL}: {reason}; {instead}")


def test_a_bundled_model_can_be_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["push", DEFAULT_MODEL, "someone/model", "--license", "mit", "--dry-run"]) == 0
    assert "nothing sent" in capsys.readouterr().err


def test_a_bundled_model_has_a_vocabulary(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("I am hungry.\n" * 20)
    options = ["--vocabulary", "en-pt-2x1", "--output", str(tmp_path / "prepared")]
    assert run(["prepare", "--source", str(text), "--target", str(text), *options]) == 0


def test_an_unknown_model_is_told_with_those_in_the_box(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, message = error_line(["translate", "--model", "en-pt-9x9"], capsys)
    assert status == 1
    assert message.startswith("en-pt-9x9: no such model directory, nor a bundled model (en-pt-")


@pytest.mark.parametrize(
    "arguments", [["train", "x.yaml"], ["average", "run", "--output", "out"], ["chain", "x.yaml"]]
)
def test_training_without_pytorch(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bothends.cli.packages.find_spec", lambda name: None)
    status, message = error_line(arguments, capsys)
    assert status == 1
    assert message.endswith(
        "needs PyTorch, which is not installed: pip install 'bothends[train,eval]'"
    )


def loaded(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has after running `code`."""
    result = python("-c", f"{code}\nimport sys\nprint(*set({HEAVY}) & set(sys.modules))")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


def test_the_package_and_every_help_load_nothing_heavy() -> None:
    calls = "\n".join(f"assert run([*{name!r}.split(), '--help']) == 0" for name in COMMANDS)
    assert loaded(f"import bothends\nfrom bothends.cli import run\n{calls}") == set()


def test_drawing_an_order_loads_nothing_heavy() -> None:
    assert loaded("from bothends.cli import run\nassert run(['order', '4x1']) == 0") == set()


def test_the_check_for_heavy_modules_can_fail() -> None:
    assert loaded("import onnxruntime") == {"onnxruntime"}
