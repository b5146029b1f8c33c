"""Plain lines: what must not change is masked before the model, and is there after it."""

from __future__ import annotations

import io
import json
import sys

import pytest

from bothends import Translator
from bothends.cli import run
from bothends.documents.masked_line import mask_line
from bothends.documents.protected import find_protected
from bothends.translating.protecting import LineProtector, may_hold_spans
from bothends.translating.translation import TranslationOptions
from test_documents_protected import SENTENCES
from tiny_model import sentences, tiny_model


def test_a_quick_look_misses_nothing() -> None:
    held = [line for line in SENTENCES if find_protected(line)]
    assert len(held) > 30
    assert [line for line in held if not may_hold_spans(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "Hello, world!",
        "In 1987, 27 people came: it rained... He said: 'Stop.' (And left.)",
        "Seven of 12 people - all old - were there in May; 3 left.",
    ],
)
def test_ordinary_lines_are_not_looked_through(line: str) -> None:
    assert not may_hold_spans(line)
    assert mask_line(line) is None


def test_a_line_is_masked_and_mended() -> None:
    masked = mask_line(" Write to a@b.org. It costs £40! 🙂 ")
    assert masked is not None
    assert masked.text == "Write to X1. It costs X2!"
    assert masked.answer("x2 kostet es. An X1!") == "£40 kostet es. An a@b.org! 🙂"
    assert masked.answer("Es kostet X2!") is None
    assert masked.answer("X1 X1 X2 nun") is None


@pytest.mark.parametrize("line", ["https://a.b/c 🙂\r", "?", " !!! ", ":)", "12", "- 3 -"])
def test_a_line_of_spans_or_marks_alone_asks_nothing(line: str) -> None:
    assert may_hold_spans(line)
    masked = mask_line(line)
    assert masked is not None
    assert (masked.text, masked.answer("")) == ("", line.strip())


@pytest.mark.parametrize(
    "line", ["  ba bo.", "    ba bo. ka ki.", "  https://a.b/c", " 12", " ", ""]
)
def test_a_line_keeps_its_indentation(line: str) -> None:
    with Translator.load(tiny_model()) as translator:
        protector = LineProtector(translator, TranslationOptions())
        asked = [each for each in protector.masked([line]) if each is not None]
        assert not any(each.startswith(" ") for each in asked)
        (found,) = protector.mended(translator.translate(asked))
    indentation = " " * (len(line) - len(line.lstrip()))
    assert found.text.startswith(indentation) or not line.strip()
    assert found.text[len(indentation) :] == found.text.strip()


@pytest.mark.parametrize("line", ["", " \t"])
def test_an_empty_line_is_not_looked_through(line: str) -> None:
    assert not may_hold_spans(line)


def test_what_is_on_both_sides_of_a_break_is_asked_apart() -> None:
    masked = mask_line(r"Saved.\nGo on?")
    assert masked is not None
    assert (masked.text, masked.answer("")) == ("", None)
    at_the_end = mask_line(r"Saved.\n")
    assert at_the_end is not None
    assert (at_the_end.text, at_the_end.answer("Salvo.")) == ("Saved.", r"Salvo.\n")


LINES = sentences(40, seed=5)
#: every fourth line has two spans and two sentences
MIXED = [
    f"{line} a@b.org. Du {line} 5 km." if number % 4 == 3 else line
    for number, line in enumerate(LINES)
]


def translate(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    text = "".join(f"{line}\n" for line in MIXED).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    return run(["translate", "--model", str(tiny_model()), *arguments])


def test_lines_keep_their_spans_and_others_do_not_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(monkeypatch) == 0
    output = capsys.readouterr().out.split("\n")[:-1]
    with Translator.load(tiny_model()) as translator:
        plain = [each.text for each in translator.translate(LINES)]
        raw = [each.text for each in translator.translate(MIXED, split_sentences=False)]
    assert len(output) == len(MIXED)
    for number, line in enumerate(output):
        if number % 4 == 3:
            assert (line.count("a@b.org"), line.count("5 km")) == (1, 1)
        else:
            assert line == plain[number]
    assert translate(monkeypatch, "--format", "lines") == 0
    assert capsys.readouterr().out.split("\n")[:-1] == raw
    assert translate(monkeypatch, "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    with Translator.load(tiny_model()) as translator:
        split = [each.text for each in translator.translate(MIXED, split_sentences=True)]
    assert [record["text"] for record in records] == split


def test_progress_counts_lines_of_several_sentences() -> None:
    told: list[int] = []
    with Translator.load(tiny_model()) as translator:
        protector = LineProtector(translator, TranslationOptions())
        advance = protector.in_lines(told.append)
        asked = list(protector.masked(["Ba bo. Du ga. Ba.", "du", None, "", "Bo! Ga!"]))
    assert asked == ["Ba bo.", "Du ga.", "Ba.", "du", None, "", "Bo!", "Ga!"]
    for batch in (2, 1, 1, 3):
        advance(batch)
    assert sum(told) == 4
    assert min(told) >= 0
