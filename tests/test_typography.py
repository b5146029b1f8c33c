"""Typographic marks on their way to a model and back."""

# The marks look like others to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bothends.documents import DocumentOptions, translate_document
from bothends.text.plain_writing import PlainWriting
from bothends.text.typography import plain_marks, typographic_marks


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("“It’s late,” she said.", "en", '"It\'s late," she said.'),
        ("the ‘best’ one", None, "the 'best' one"),
        ("„Gut“", "de", '"Gut"'),
        ("10–20 people", "en", "10-20 people"),
        ("London–Paris", "en", "London-Paris"),
        ("They won – again.", "en", "They won - again."),
        ("It was cold—very cold.", "en", "It was cold - very cold."),
        ("— Hello.", "en", "- Hello."),
        ("“I was about to—” he said.", "en", '"I was about to -" he said.'),
        ("what?—he asked (one—two)——", "en", "what? - he asked (one - two) -"),
        ("It was cold--very cold.", "en", "It was cold - very cold."),
        ("He came -- and left---", "en", "He came - and left -"),
        ('"I was about to--" he said.', "en", '"I was about to -" he said.'),
        ("what?--he asked", "en", "what? - he asked"),
        ("run --help 10--20 <!-- x -->, ----", "en", "run --help 10--20 <!-- x -->, ----"),
        ("他说——好。", "zh", "他说——好。"),
        ("non‑breaking and hy\u00adphen", "en", "non-breaking and hyphen"),
        ("他说“好”。", "zh_CN", "他说“好”。"),
        ("plain 'as' \"ever\"", "en", "plain 'as' \"ever\""),
    ],
)
def test_plain_marks(text: str, language: str | None, expected: str) -> None:
    assert plain_marks(text, language) == expected


@pytest.mark.parametrize(
    ("text", "source", "language", "expected"),
    [
        ('"Olá", disse.', "“Hi”", "pt", "“Olá”, disse."),
        ('"Hallo", sagte er, "du".', "“Hi”", "de", "„Hallo“, sagte er, „du“."),
        ('"Salut"', "“Hi”", "fr", '"Salut"'),
        ('"Olá, disse.', "“Hi”", "pt", '"Olá, disse.'),  # a quote is missing: which is which?
        ("l'eau d'ici", "it’s", "fr", "l’eau d’ici"),
        ("l'eau", "it is", "fr", "l'eau"),
        ('5" e "x"', "no quotes", "pt", '5" e "x"'),
        ("Estava frio - muito frio.", "It was cold—very cold.", "pt", "Estava frio—muito frio."),
        ("Fazia frio - muito.", "It was cold – very cold.", "pt", "Fazia frio – muito."),
        ("- Olá.", "— Hello.", "pt", "— Olá."),
        ('"Eu ia -" disse.', "“I was about to—” he said.", "pt", "“Eu ia—” disse."),
        ("a - b - c", "a - b — c", "pt", "a - b — c"),
        ("Frio - muito - eu -", "Cold--very -- I--", "pt", "Frio--muito -- eu--"),
        ('"Eu ia -" disse.', '"I was about to--" he said.', "pt", '"Eu ia--" disse.'),
        ("Frio - muito - frio.", "Cold—very cold.", "pt", "Frio - muito - frio."),  # which is it?
        ("frio - muito", "cold - very", "pt", "frio - muito"),
        ("很冷 - 很冷", "cold—very cold", "zh", "很冷 - 很冷"),
    ],
)
def test_typographic_marks(text: str, source: str, language: str, expected: str) -> None:
    assert typographic_marks(text, source, language) == expected


def test_capitals_and_quotes_at_once() -> None:
    writing = PlainWriting("en", "pt")
    assert writing.of("“IT’S LATE!”") == '"It\'s late!"'
    assert writing.restore("“IT’S LATE!”", '"É tarde!"') == "“É TARDE!”"


@pytest.mark.parametrize("format", ["text", "html", "srt"])
def test_documents_come_back_as_they_were_written(format: str) -> None:
    text = "“It’s late—very late.”"
    if format == "srt":
        text = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"
    asked: list[str] = []

    def copy(sentences: Sequence[str]) -> list[str]:
        asked.extend(sentences)
        return list(sentences)

    options = DocumentOptions(language="en", target_language="pt")
    assert translate_document(text, format, copy, options).text == text  # type: ignore[arg-type]
    assert asked == ['"It\'s late - very late."']
