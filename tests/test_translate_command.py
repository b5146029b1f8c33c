"""`bothends translate` as users run it: in pipes, on odd text, typed line by line."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

from bothends import TranslationOptions, Translator
from bothends.cli import run
from bothends.cli.translate import translate as translate_command
from bothends.translation import OptionFields
from tiny_model import sentences, tiny_model


class Outcome(NamedTuple):
    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        assert self.output == "" or self.output.endswith("\n")
        return self.output.split("\n")[:-1]


Command = Callable[..., Outcome]


@pytest.fixture
def translate(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Runs the command on some bytes of standard input, in this process."""

    def command(*arguments: str | Path, text: bytes = b"", name: str = "translate") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        status = run([name, "--model", str(tiny_model()), *map(str, arguments)])
        captured = capsysbinary.readouterr()
        return Outcome(status, captured.out.decode(), captured.err.decode())

    return command


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "bothends", "translate", "--model", tiny_model()]
    return subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture(scope="module")
def expected() -> Callable[[list[str]], list[str]]:
    translator = Translator.load(tiny_model(), threads=1)
    return lambda lines: [translation.text for translation in translator.translate(lines)]


ODD_TEXT = (
    "ba bo\n\n   \nda\r\n\r\nba\u2028bo\nba\tbo\x0bda\x0cdu\n\x00\nba\x00bo\né 漢字 🙂\n"
    "the last line has no end"
)


class TestAlignment:
    def test_line_in_line_out(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        outcome = translate(text=ODD_TEXT.encode())
        lines = [line.removesuffix("\r") for line in ODD_TEXT.split("\n")]
        assert (outcome.status, outcome.errors) == (0, "")
        assert outcome.lines == expected(lines)
        assert outcome.lines[1:3] == ["", ""]

    def test_files(
        self,
        translate: Command,
        tmp_path: Path,
        expected: Callable[[list[str]], list[str]],
    ) -> None:
        text = sentences(300, seed=21)
        first, second, empty = (tmp_path / name for name in ("first", "second", "empty"))
        first.write_text("\n".join(text[:200]))
        second.write_text("\n".join(text[200:]))
        empty.write_text("")
        assert translate(first, empty, second, "--beam", "4").lines == expected(text)

    @pytest.mark.parametrize("option", ["--threads=1", "--threads=3", "--batch-tokens=30"])
    def test_however_the_work_is_divided(
        self, translate: Command, option: str, expected: Callable[[list[str]], list[str]]
    ) -> None:
        text = sentences(100, seed=22)
        assert translate(option, text="\n".join(text).encode()).lines == expected(text)

    def test_no_input(self, translate: Command) -> None:
        assert translate(text=b"") == Outcome(0, "", "")

    def test_summarize_is_translate(self, translate: Command) -> None:
        text = b"ba bo da\n\ndu\n"
        assert translate(text=text, name="summarize") == translate(text=text)


class TestFormats:
    TEXT = b"ba bo da\n\ndu ga\n"

    def test_scores(self, translate: Command) -> None:
        plain, scored = translate(text=self.TEXT), translate("--scores", text=self.TEXT)
        pairs = [line.split("\t") for line in scored.lines]
        assert [text for _, text in pairs] == plain.lines
        assert [float(score) < 0 for score, _ in pairs] == [True, False, True]

    def test_n_best_lines(self, translate: Command) -> None:
        best, three = translate(text=self.TEXT), translate("--n-best", "3", text=self.TEXT)
        assert len(three.lines) == 9
        assert three.lines[::3] == best.lines
        assert three.lines[3:6] == ["", "", ""]
        scored = translate("--n-best=3", "--scores", text=self.TEXT)
        assert [line.partition("\t")[2] for line in scored.lines] == three.lines

    def test_json(self, translate: Command) -> None:
        plain = translate(text=self.TEXT)
        records = [json.loads(line) for line in translate("--json", text=self.TEXT).lines]
        assert [record["text"] for record in records] == plain.lines
        assert set(records[0]) == {
            *("text", "score", "logprob", "tokens", "pieces"),
            *("steps", "finished", "truncated", "time"),
        }
        assert len(records[0]["tokens"]) == len(records[0]["pieces"]) > 0
        assert records[0]["steps"] > 0
        assert records[0]["time"] > 0
        assert (records[1]["tokens"], records[1]["steps"]) == ([], 0)

    def test_n_best_json(self, translate: Command) -> None:
        lines = translate("--n-best=3", text=self.TEXT).lines
        records = [
            json.loads(line) for line in translate("--json", "--n-best=3", text=self.TEXT).lines
        ]
        assert len(records) == 3
        for record, texts in ((records[0], lines[:3]), (records[2], lines[6:])):
            assert [record["text"], *(each["text"] for each in record["hypotheses"][1:])] == texts

    def test_progress_goes_to_stderr(self, translate: Command) -> None:
        plain, reported = translate(text=self.TEXT), translate("--progress", text=self.TEXT)
        assert reported.output == plain.output
        assert "3 lines, " in reported.errors


class TestOverlongLines:
    TEXT = b"ba bo\n" + b"ba bo da du " * 20 + b"\nda\n" + b"du " * 30 + b"\n"

    def test_a_warning_each_and_a_count(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(self.TEXT)
        outcome = translate("--max-source-length=16", path)
        assert (outcome.status, len(outcome.lines)) == (0, 4)
        assert outcome.errors.splitlines() == [
            f"bothends: warning: {path}, line {number}: longer than 16 tokens, "
            "the rest of it is not translated"
            for number in (2, 4)
        ] + ["bothends: warning: 2 over-long lines were cut"]

    def test_an_error_where_strict(self, translate: Command) -> None:
        outcome = translate("--max-source-length=16", "--strict", text=self.TEXT)
        assert outcome.status == 1
        assert len(outcome.lines) == 1  # what came before it
        assert outcome.errors == (
            "bothends: error: <stdin>, line 2: longer than 16 tokens; see --max-source-length\n"
        )

    def test_a_very_long_line(self, translate: Command) -> None:
        outcome = translate("--beam=1", "--max-length=5", text=b"ba bo da " * 30_000)
        assert (outcome.status, len(outcome.lines)) == (0, 1)
        assert "<stdin>, line 1: longer than 512 tokens" in outcome.errors


class TestErrors:
    def test_invalid_utf8(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(b"ba\nbo\nd\xffa\ndu\n")
        outcome = translate(path)
        assert outcome.status == 1
        assert len(outcome.lines) == 2  # what came before it
        assert outcome.errors.startswith(f"bothends: error: {path}, line 3: not valid UTF-8")
        assert outcome.errors.count("\n") == 1

    def test_invalid_utf8_replaced(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        outcome = translate("--invalid", "replace", text=b"ba\nd\xffa\n")
        assert (outcome.status, outcome.errors) == (0, "")
        assert outcome.lines == expected(["ba", "d\ufffda"])

    @pytest.mark.parametrize(
        ("arguments", "status", "message"),
        [
            (["no-such-file"], 1, "no-such-file: no such file"),
            (["--model=no-such-model"], 1, "no-such-model: no such model directory"),
            (["--model=."], 1, "not a model directory"),
            (["--precision=int8"], 1, "--precision int8`"),
            (["--precision=int4"], 2, "int4"),
            (["--beam=0"], 2, "--beam"),
            (["--n-best=9"], 2, "n_best"),
            (["--threads=0"], 2, "--threads"),
            (["--min-length=9", "--max-length=3"], 2, "min_length"),
            (["--invalid=ignore"], 2, "--invalid"),
            (["--beams=3"], 2, "--beam"),
        ],
    )
    def test_one_line_that_says_what_is_wrong(
        self,
        translate: Command,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        status: int,
        message: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        outcome = translate(*arguments, text=b"ba\n")
        assert (outcome.status, outcome.output) == (status, "")
        assert outcome.errors.startswith("bothends: error: ")
        assert outcome.errors.count("\n") == 1
        assert message in outcome.errors

    def test_a_model_without_graphs(self, translate: Command, tmp_path: Path) -> None:
        directory = tmp_path / "model"
        shutil.copytree(tiny_model(precision=None), directory)
        outcome = translate("--model", directory)
        assert outcome.status == 1
        assert f"`bothends export {directory}`" in outcome.errors


def test_every_option_is_one_of_the_command_and_of_the_library() -> None:
    """Their defaults are declared once, so only names can go astray."""
    options = {field.name for field in fields(TranslationOptions)}
    here = inspect.signature(translate_command).parameters
    assert options - here.keys() == {"normalisation"}  # not an option of the command
    assert OptionFields.__annotations__.keys() == options  # what type checkers are told


class TestProcess:
    def test_a_typed_line_is_answered_before_the_next(
        self, expected: Callable[[list[str]], list[str]]
    ) -> None:
        process = start()
        assert process.stdin is not None
        assert process.stdout is not None
        for line in ("ba bo", "", "da du ga"):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 60)[0], "no answer within 60 s"
            assert process.stdout.readline().decode().removesuffix("\n") == expected([line])[0]
        rest, errors = process.communicate()
        assert (process.returncode, rest, errors) == (0, b"", b"")

    def test_no_bar_is_drawn_into_translations_on_a_terminal(
        self, tmp_path: Path, expected: Callable[[list[str]], list[str]]
    ) -> None:
        lines = sentences(3, seed=23)
        path = tmp_path / "text"
        path.write_text("\n".join(lines))
        terminal, program = pty.openpty()
        command = [sys.executable, "-m", "bothends", "translate", "--model", str(tiny_model())]
        with subprocess.Popen(
            [*command, "--progress", str(path)],
            stdout=program,
            stderr=program,
            env={**os.environ, "TERM": "xterm"},
        ) as process:
            os.close(program)
            shown = b""
            with suppress(OSError):  # how Linux says that the other end was closed
                while piece := os.read(terminal, 4096):
                    shown += piece
        os.close(terminal)
        assert process.returncode == 0
        *translations, summary = shown.decode().splitlines()
        assert translations == expected(lines)
        assert summary.startswith("3 lines, ")

    def test_a_reader_that_leaves(self, tmp_path: Path) -> None:
        """As in `bothends translate FILE | head -1`, in the middle of the work."""
        path = tmp_path / "text"
        path.write_text("\n".join(sentences(20_000)))
        process = start(path)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0

    def test_a_writer_that_stays(self) -> None:
        """The reader leaves while standard input is open and says nothing."""
        process = start()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"ba\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"ba\n")
        process.stdin.flush()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""
        process.stdin.close()

    def test_text_is_utf8_whatever_the_locale(
        self, expected: Callable[[list[str]], list[str]]
    ) -> None:
        """Bytes that no other encoding would spell so, in and out."""
        environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        completed = subprocess.run(
            [sys.executable, "-m", "bothends", "translate", "--json", "--model", str(tiny_model())],
            input="é 漢字\n".encode(),
            capture_output=True,
            env=environment,
            check=True,
        )
        record = json.loads(completed.stdout)
        assert record["text"] == expected(["é 漢字"])[0]
        assert "▁".encode() in completed.stdout

    def test_the_command_line_imports_nothing_heavy(self) -> None:
        program = (
            "import sys, bothends.cli;"
            "heavy = {'torch', 'onnxruntime', 'numpy', 'sentencepiece', 'pydantic',"
            " 'transformers', 'matplotlib'} & set(sys.modules);"
            "sys.exit(str(heavy) if heavy else 0)"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
