"""`bothends translate` as users run it: in pipes, on odd text, typed line by line."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from bothends import TranslationOptions, Translator
from bothends.cli import run
from bothends.cli.translate import translate as translate_command
from bothends.model.directory import (
    CONFIG,
    read_description,
    record_model,
    write_description,
)
from bothends.model.lengths import LengthStatistics
from bothends.text.vocabulary import Vocabularies
from bothends.translating.cells import TableCells
from bothends.translating.translation import OptionFields
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
    options = TranslationOptions(split_sentences=False)
    return lambda lines: [translation.text for translation in translator.translate(lines, options)]


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
        # Emoji and words with letters that the vocabulary lacks are not for the model, nor are
        # lines without a letter.
        kept = ("é 漢字 🙂", "\x00")
        answers = ["\t".join(expected(line.split("\t"))) for line in lines]
        pairs = zip(lines, answers, strict=True)
        assert outcome.lines == [line if line in kept else answer for line, answer in pairs]
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


def capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


class TestTables:
    def test_tabs_stay_and_cells_are_translated_alone(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        rows = ["ba bo\tda du", "\tla mu", "da\t\t12:30\tki la\t", "\t\t", "", "ba bo da"]
        cells = expected(["ba bo", "da du", "la mu", "da", "ki la", "ba bo da"])
        one, two, three, four, five, six = cells
        outcome = translate(text="\n".join(rows).encode())
        lines = [f"{one}\t{two}", f"\t{three}", f"{four}\t\t12:30\t{five}\t", "\t\t", "", six]
        assert outcome == Outcome(0, "".join(f"{line}\n" for line in lines), "")

    def test_spans_sentences_and_numbers_of_cells(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        outcome = translate(text=b"ba bo. Da du.\thttps://a.b/c\t5 km\n")
        first, second = expected(["ba bo.", "Da du."])
        assert outcome.lines == [f"{first} {capitalised(second)}\thttps://a.b/c\t5 km"]

    def test_rows_that_are_wider_than_a_window(
        self, translate: Command, expected: Callable[[list[str]], list[str]], tmp_path: Path
    ) -> None:
        rows = [sentences(each, seed=each) for each in (3, 70, 1, 200, 2)]
        first, second = tmp_path / "first", tmp_path / "second"
        first.write_text("".join("\t".join(row) + "\n" for row in rows[:3]))
        second.write_text("".join("\t".join(row) + "\n" for row in rows[3:]))
        (tmp_path / "out").mkdir()
        assert translate(first, second, "--output", tmp_path / "out").status == 0
        written = [
            line.split("\t")
            for name in ("first", "second")
            for line in (tmp_path / "out" / name).read_text().splitlines()
        ]
        assert written == [expected(row) for row in rows]

    def test_warnings_name_the_line(self, translate: Command) -> None:
        text = b"ba bo\tda\nba\tda\tla\nba\tba bo da du ba bo\n"
        outcome = translate("--max-length=2", text=text)
        cut = "the translation reached its maximum length, and was cut there"
        assert f"<stdin>, line 3: {cut}" in outcome.errors
        assert len(outcome.lines) == 3
        assert "line 4" not in outcome.errors

    def test_progress_counts_lines(self) -> None:
        cells = TableCells(TranslationOptions())
        told: list[int] = []
        advance = cells.in_lines(told.append)
        read = list(cells.cut(["a\tb\tc", "d", None, "", "e\tf"]))
        assert read == ["a", "b", "c", "d", None, "", "e", "f"]
        for batch in (2, 1, 3, 1):
            advance(batch)
        assert sum(told) == 4
        assert min(told) >= 0

    def test_other_outputs_take_lines_as_they_are(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        text = b"ba bo\tda du\n"
        whole = expected(["ba bo\tda du"])
        assert translate("--format=lines", text=text).lines == whole
        assert [json.loads(translate("--json", text=text).output)["text"]] == whole


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
            *("steps", "finished", "truncated", "short", "sentences", "time"),
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

    def test_the_rate_is_that_of_the_whole_time(
        self, translate: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = SimpleNamespace(monotonic=iter([10.0, 12.0]).__next__)
        monkeypatch.setattr("bothends.translating.request.time", clock)
        assert translate("--progress", text=self.TEXT).errors == "3 lines, 1.5 a second\n"


class TestOverlongLines:
    TEXT = b"ba bo\n" + b"ba bo da du " * 20 + b"\nda\n" + b"du " * 30 + b"\n"

    def test_a_warning_each_and_a_count(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(self.TEXT)
        outcome = translate("--max-source-length=16", "--format=lines", path)
        assert (outcome.status, len(outcome.lines)) == (0, 4)
        assert outcome.errors.splitlines() == [
            f"bothends: warning: {path}, line {number}: longer than 16 tokens, "
            "the rest of it is not translated"
            for number in (2, 4)
        ] + ["bothends: warning: 2 over-long lines were cut"]

    def test_an_error_where_strict(self, translate: Command) -> None:
        outcome = translate("--max-source-length=16", "--format=lines", "--strict", text=self.TEXT)
        assert outcome.status == 1
        assert len(outcome.lines) == 1  # what came before it
        assert outcome.errors == (
            "bothends: error: <stdin>, line 2: longer than 16 tokens; see --max-source-length\n"
        )

    def test_a_very_long_line(self, translate: Command) -> None:
        text = b"ba bo da " * 30_000
        outcome = translate("--beam=1", "--max-length=5", "--format=lines", text=text)
        assert (outcome.status, len(outcome.lines)) == (0, 1)
        assert "<stdin>, line 1: longer than 512 tokens" in outcome.errors

    def test_by_default_a_line_that_is_too_long_is_cut_at_clauses(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        clauses = ["ba bo da du ga;", "ki la mu da du ga"]
        vocabulary = Vocabularies.load(tiny_model()).source
        limit = max(map(len, vocabulary.encode(clauses)))
        outcome = translate(f"--max-source-length={limit}", text=" ".join(clauses).encode())
        assert (outcome.status, outcome.errors) == (0, "")
        assert outcome.lines == [" ".join(expected(clauses))]


class TestLinesOfSeveralSentences:
    TEXT = b"ba bo\nBa bo da. Du ga! Ki la?\nDa. Du.\n"

    def test_are_split_and_joined(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        outcome = translate(text=self.TEXT)
        assert (outcome.status, outcome.errors) == (0, "")
        parts = [["ba bo"], ["Ba bo da.", "Du ga!", "Ki la?"], ["Da.", "Du."]]
        first, *others = (expected(part) for part in parts)
        assert outcome.lines == [*first, *(" ".join(map(capitalised, part)) for part in others)]

    def test_records_tell_it(self, translate: Command) -> None:
        records = [json.loads(line) for line in translate("--json", text=self.TEXT).lines]
        assert [record["sentences"] for record in records] == [1, 3, 2]
        parts = b"Ba bo da.\nDu ga!\nKi la?\n"
        sentences = [json.loads(line) for line in translate("--json", text=parts).lines]
        whole = records[1]
        assert whole["tokens"] == [token for each in sentences for token in each["tokens"]]
        assert whole["logprob"] == pytest.approx(sum(each["logprob"] for each in sentences))
        normaliser = ((5 + len(whole["tokens"])) / 6) ** 0.6
        assert whole["score"] == pytest.approx(whole["logprob"] / normaliser)

    def test_n_best_of_each(self, translate: Command) -> None:
        whole = translate("--n-best=2", text=b"Ba bo da. Du ga!\n").lines
        parts = translate("--n-best=2", text=b"Ba bo da.\nDu ga!\n").lines
        assert whole == [f"{parts[0]} {parts[2]}", f"{parts[1]} {parts[3]}"]

    def test_a_warning_where_a_line_is_a_sentence(
        self, translate: Command, expected: Callable[[list[str]], list[str]]
    ) -> None:
        outcome = translate("--format=lines", text=self.TEXT)
        assert outcome.lines == expected(self.TEXT.decode().splitlines())
        assert outcome.errors == (
            "bothends: warning: <stdin>, line 2: holds several sentences, and a model translates "
            "one at a time; without --format lines, they are split\n"
        )

    def test_a_warning_where_a_line_is_longer_than_all_that_the_model_learned_from(
        self, translate: Command, tmp_path: Path
    ) -> None:
        """A sentence, but no translation of it can be hoped for; of several lines the first."""
        model = Path(shutil.copytree(tiny_model(), tmp_path / "model"))
        description = read_description(model)
        lengths = LengthStatistics(mean=0.0, spread=9.0, longest_source=10)
        write_description(model, replace(description, lengths=lengths))
        record_model(model, [CONFIG])
        text = b"ba bo\n" + 2 * (b"ba bo da du ga " * 4 + b"\n")
        tokens = len(Vocabularies.load(model).source.encode([text.decode().splitlines()[1]])[0])
        warning = (
            f"bothends: warning: <stdin>, line 2: {tokens} tokens, and the model learned from 10 "
            "at most; without --format lines, it is cut at clauses\n"
        )
        # The last --model counts.
        assert translate("--format=lines", "--model", model, text=text).errors == warning
        assert translate("--model", model, text=text).errors == ""

    def test_a_document(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(b"Ba bo da. Du ga!\n\n- ki la\n")
        outcome = translate("--format=text", path, "--output", tmp_path / "out")
        assert (outcome.status, outcome.output, outcome.errors) == (0, "", "")
        first, empty, item = (tmp_path / "out").read_text().splitlines()
        assert (empty, item[:2]) == ("", "- ")
        assert first == " ".join(translate(text=b"Ba bo da.\nDu ga!\n").lines)


class TestCutTranslations:
    TEXT = b"ba bo\n\nda du ga\n"

    def test_a_warning_each_and_a_count(self, translate: Command) -> None:
        outcome = translate("--max-length=1", text=self.TEXT)
        assert (outcome.status, len(outcome.lines)) == (0, 3)
        records = [
            json.loads(line) for line in translate("--max-length=1", "--json", text=self.TEXT).lines
        ]
        cut = [number for number, each in enumerate(records, start=1) if not each["finished"]]
        assert cut
        count = "1 translation was" if len(cut) == 1 else f"{len(cut)} translations were"
        assert outcome.errors.splitlines() == [
            f"bothends: warning: <stdin>, line {number}: the translation reached its maximum "
            "length, and was cut there"
            for number in cut
        ] + [f"bothends: warning: {count} cut at the maximum length"]

    def test_an_error_where_strict(self, translate: Command) -> None:
        outcome = translate("--max-length=1", "--strict", text=b"da du ga\n")
        assert outcome == Outcome(
            1,
            "",
            "bothends: error: <stdin>, line 1: the translation reached its maximum length; see "
            "--max-length\n",
        )

    def test_in_a_document_by_the_sentence(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(b"Da du ga, la lo.\n")
        outcome = translate("--format=text", "--max-length=1", path)
        assert outcome.status == 0
        assert outcome.errors.splitlines() == [
            f"bothends: warning: {path}: 'Da du ga, la lo.': its translation reached the maximum "
            "length and was cut there",
            "bothends: warning: translations of sentences that were cut at the maximum length: 1",
        ]
        strict = translate("--format=text", "--max-length=1", "--strict", path)
        assert (strict.status, strict.output) == (1, "")
        assert strict.errors.endswith("and was cut there; see --max-length\n")

    def test_a_thousand_warnings_are_a_few(self, translate: Command) -> None:
        text = "\n".join(f"da du ga {line}" for line in sentences(60, seed=3)).encode()
        errors = translate("--max-length=1", text=text).errors.splitlines()
        assert len(errors) == 22
        assert errors[-2] == (
            "bothends: warning: more unfinished lines follow, which are only counted"
        )


class TestShortTranslations:
    def test_are_marked_and_counted(self, translate: Command, tmp_path: Path) -> None:
        directory = tmp_path / "model"
        shutil.copytree(tiny_model(), directory)
        lengths = LengthStatistics(mean=0.0, spread=0.3, longest_source=500)
        description = replace(read_description(directory), lengths=lengths)
        write_description(directory, description)
        record_model(directory, [CONFIG])
        text = b"ba bo da du ga gi ka ki la lo ma mu\nba bo\n"
        options = ("--model", directory, "--max-length=3")
        records = [json.loads(line) for line in translate(*options, "--json", text=text).lines]
        assert [record["short"] for record in records] == [True, False]
        last = translate(*options, text=text).errors.splitlines()[-1]
        assert last == (
            "bothends: warning: 1 translation is much shorter than its source, and may lack a "
            "part; --json marks them as short"
        )


class TestOutputFiles:
    def test_one_file_for_all(self, translate: Command, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        first.write_bytes(b"ba bo\n\n")
        second.write_bytes(b"da\n")
        output = tmp_path / "output"
        outcome = translate(first, second, "--output", output)
        assert outcome == Outcome(0, "", "")
        assert output.read_text().splitlines() == translate(first, second).lines

    def test_one_file_for_each_empty_ones_too(self, translate: Command, tmp_path: Path) -> None:
        text = {"a.en": b"ba bo\nda\n", "b.en": b"", "c.en": b"du", "d.en": b""}
        for name, content in text.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "to").mkdir()
        outcome = translate(tmp_path / "*.en", "-o", tmp_path / "to")
        assert outcome == Outcome(0, "", "")
        for name, content in text.items():
            assert (tmp_path / "to" / name).read_text() == translate(text=content).output
        named = [argument for name in "xyzu" for argument in ("--output", tmp_path / name)]
        assert translate(*(tmp_path / name for name in text), *named).status == 0
        assert (tmp_path / "z").read_text() == translate(text=b"du").output

    def test_an_input_is_not_replaced(self, translate: Command, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes(b"ba bo\n")
        for output in (path, tmp_path / "." / "text", tmp_path):
            outcome = translate(path, "--output", output)
            assert outcome.status == 1
            assert "is an input, too; write to another file" in outcome.errors
        assert path.read_bytes() == b"ba bo\n"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
    def test_a_device_that_is_full(self, translate: Command) -> None:
        outcome = translate("--output", "/dev/full", text=b"ba\n")
        assert outcome == Outcome(1, "", "bothends: error: /dev/full: No space left on device\n")

    def test_a_link_stays_one_and_may_lead_nowhere(
        self, translate: Command, tmp_path: Path
    ) -> None:
        (tmp_path / "link").symlink_to("file")
        (tmp_path / "loop").symlink_to("loop")
        assert translate("--output", tmp_path / "link", text=b"ba\n").status == 0
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_text().count("\n") == 1
        outcome = translate(tmp_path / "loop", "--output", tmp_path / "other")
        assert outcome.status == 1
        assert outcome.errors == f"bothends: error: {tmp_path / 'loop'}: no such file\n"

    def test_whole_or_not_at_all(self, translate: Command, tmp_path: Path) -> None:
        path, output = tmp_path / "text", tmp_path / "output"
        path.write_bytes(b"ba\nb\xffo\n")
        output.write_text("before")
        assert translate(path, "--output", output).status == 1
        assert output.read_text() == "before"
        assert sorted(each.name for each in tmp_path.iterdir()) == ["output", "text"]


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
            (["--precision=int4"], 2, "error: Invalid value for '--precision': 'int4' is not"),
            (["--beam=0"], 2, "--beam"),
            (["--n-best=9"], 2, "error: --n-best must not exceed the beam: 9 hypotheses"),
            (["--threads=0"], 2, "--threads"),
            (
                ["--min-length=9", "--max-length=3"],
                2,
                "--min-length 9 is greater than --max-length",
            ),
            (["--min-length=100000"], 2, "error: --min-length 100000: at most 2048; every"),
            (["--beam=300"], 2, "error: --beam 300: at most 256"),
            (["messages.po"], 2, "messages.po: not a format that keeps its markup"),
            (["--format=srt", "--json"], 2, "--format srt: is written as text, without --n-best"),
            (["a.md", "--json"], 2, "--format markdown: is written as text, without --n-best"),
            (["a.txt", "--n-best=2"], 2, "--json; --format lines takes it as lines"),
            (["no-*.such"], 1, "no-*.such: no file matches"),
            (["--output=no/x"], 1, "--output no/x: no is not a directory that can be written to"),
            (["--output=x", "--output=y"], 2, "--output is given 2 times for 0 files"),
            (["--output=."], 2, "--output .: is a directory, but no input has a name"),
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

    def test_a_line_without_an_end(self, tmp_path: Path) -> None:
        """As of `yes | tr -d '\\n'`: refused after a megabyte, in memory of that order."""
        program = (
            "import resource, sys; from bothends.cli import run;"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
            "status = run(['translate', '--model', sys.argv[1]]);"
            "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before;"
            "sys.exit(99 if grown > 400_000 else status)"
        )
        endless = subprocess.Popen(
            [sys.executable, "-c", "while True: print('ba ' * 10_000, end='')"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tiny_model())],
            stdin=endless.stdout,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        endless.kill()
        endless.wait()
        assert (done.returncode, done.stderr) == (
            1,
            "bothends: error: <stdin>, line 1: longer than 1,048,576 bytes, hardly a line of "
            "text; break it into lines\n",
        )

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
    assert options - here.keys() == {"normalisation", "split_sentences"}  # --format is the latter
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

    @pytest.mark.parametrize("named", [True, False])
    def test_progress_on_a_terminal(
        self, named: bool, tmp_path: Path, expected: Callable[[list[str]], list[str]]
    ) -> None:
        """A bar with the total of the file, where stderr is a terminal and stdout is not."""
        lines = sentences(300, seed=23)
        path = tmp_path / "text"
        path.write_text("\n".join(lines))
        terminal, program = pty.openpty()
        command = [sys.executable, "-m", "bothends", "translate", "--model", str(tiny_model())]
        with open(path) as source, open(tmp_path / "out", "wb") as output:
            process = subprocess.Popen(
                [*command, path] if named else command,
                stdin=program if named else source,
                stdout=output,
                stderr=program,
                env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
            )
        os.close(program)
        shown = b""
        with suppress(OSError):
            while piece := os.read(terminal, 4096):
                shown += piece
        os.close(terminal)
        assert process.wait() == 0
        assert (tmp_path / "out").read_text().splitlines() == expected(lines)
        text = shown.decode()
        assert "/300" in text
        assert re.search(r"\r?\n?300 lines, [\d.,]+ a second", text)

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


def test_the_name_of_a_file_chooses_its_format(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    page, notes = tmp_path / "page.md", tmp_path / "notes.srt"
    page.write_text("# Good night\n\n- `code`\n- [Tom](http://a.b/c)\n", encoding="utf-8")
    notes.write_text("1\n00:00:01,000 --> 00:00:02,000\nI am hungry.\n", encoding="utf-8")
    assert run(["translate", str(page)]) == 0
    by_name = capsysbinary.readouterr().out
    assert run(["translate", "--format", "markdown", str(page)]) == 0
    assert capsysbinary.readouterr().out == by_name
    assert by_name.startswith(b"# ")
    assert b"- `code`" in by_name
    assert b"](http://a.b/c)" in by_name
    assert run(["translate", "--format", "lines", str(page)]) == 0
    assert capsysbinary.readouterr().out != by_name
    assert run(["translate", str(page), str(notes)]) == 2
    assert b"several formats (markdown, srt)" in capsysbinary.readouterr().err


def test_a_glossary_is_honoured_or_reported(translate: Command, tmp_path: Path) -> None:
    lines = sentences(6)
    first, second = lines[0].split()[0], "nowhere"
    glossary = tmp_path / "terms.tsv"
    glossary.write_text(f"# terms\n{first}\t{first}\n{second}\tzzzz\n", encoding="utf-8")
    text = "\n".join([*lines, ""]).encode()
    plain = translate("--format", "lines", text=text)
    outcome = translate("--format", "lines", "--glossary", glossary, text=text)
    assert outcome.status == 0
    assert len(outcome.lines) == len(plain.lines) == len(lines)
    assert "not honoured" not in outcome.errors or first in outcome.errors
    missing = translate("--glossary", glossary, text=f"{second}\n".encode())
    if "zzzz" not in missing.output:  # no model has to know how to copy a placeholder
        assert "the glossary was not honoured at 1 of 1 places: nowhere (1)" in missing.errors
    document = tmp_path / "a.md"
    document.write_text(f"# {lines[0]}\n\n`{second}`\n", encoding="utf-8")
    outcome = translate("--glossary", glossary, document)
    assert outcome.output.startswith("# ")
    assert f"`{second}`" in outcome.output


def test_blocks_that_stay_are_reported(translate: Command, tmp_path: Path) -> None:
    document, output = tmp_path / "a.md", tmp_path / "b.md"
    document.write_text("- ba\n\n  \tda\n\tdu\n\n- bo\n\n  \tga\n\tgi\n", encoding="utf-8")
    outcome = translate("--output", output, document)
    assert outcome.status == 0
    assert f"2 blocks stay in the source language: {document}" in outcome.errors
    outcome = translate("--strict", "--output", tmp_path / "c.md", document)
    assert outcome.status == 1
    assert f"2 blocks stay in the source language: {document}" in outcome.errors
    assert not (tmp_path / "c.md").exists()


def test_a_glossary_is_for_text(translate: Command, tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("a b\n", encoding="utf-8")
    assert "line 1: expected source<TAB>target" in translate("--glossary", glossary).errors
    glossary.write_text("a\tb\n", encoding="utf-8")
    for option in ("--json", "--scores"):
        outcome = translate("--glossary", glossary, option)
        assert outcome.status == 2
        assert "--glossary: is written as text" in outcome.errors
    assert translate("--glossary", glossary, "--workers", "2").status == 2
    assert "no such file" in translate("--glossary", tmp_path / "none").errors


def test_documents_tell_how_far_they_are(
    translate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.progress.INTERVAL", 0.0)
    document = tmp_path / "a.txt"
    document.write_text("\n\n".join(sentences(5)), encoding="utf-8")
    output = tmp_path / "b.txt"
    outcome = translate("--progress", "--output", output, document)
    assert re.search(r"translate: 5 sentences, .* a second", outcome.errors)
