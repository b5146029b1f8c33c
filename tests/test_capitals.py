"""Text in capitals: what is taken for it, how it is asked for, and what comes back."""

# Turkish has an i without a dot.
# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bothends.documents import DocumentOptions, translate_document
from bothends.text.capitals import (
    in_capitals,
    in_small_letters,
    with_capitals,
    with_first_capital,
)
from bothends.translating.protecting import LineProtector
from bothends.translating.translation import TranslationOptions
from bothends.translator import Translator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HELLO WORLD", True),
        ("STOP!", True),
        ("ÇA VA ÊTRE DIFFICILE", True),
        ("ПРИВЕТ, МИР", True),
        ("CALL X1 NOW", True),
        ("CHAPTER 3: 1999", True),
        ("Hello WORLD", False),
        ("USA", False),
        ("DVD, HTML & CO", False),
        ("ISO 9001", False),
        ("COVID-19", False),
        ("ABCD1234", False),
        ("12.50", False),
        ("日本語", False),
        ("", False),
    ],
)
def test_what_is_in_capitals(text: str, expected: bool) -> None:
    assert in_capitals(text) is expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("HELLO WORLD", "en", "Hello world"),
        (
            "STOP! DO NOT ENTER. I'M SERIOUS, I SWEAR.",
            "en",
            "Stop! Do not enter. I'm serious, I swear.",
        ),
        ("MR. SMITH BOUGHT A DVD AND X1", "eng_Latn", "Mr. Smith bought a DVD and X1"),
        ('"WAIT!" HE SAID', "en", '"Wait!" He said'),
        ("I GATTI DORMONO", "it", "I gatti dormono"),
        ("L'INTELLIGENCE ET I", "fr", "L'intelligence et i"),
        ("IŞIK VE İNSAN", "tr", "Işık ve insan"),
        ("LÄSTIG", None, "Lästig"),
    ],
)
def test_small_letters(text: str, language: str | None, expected: str) -> None:
    assert in_small_letters(text, language) == expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Olá, mundo", "pt", "OLÁ, MUNDO"),
        ("ışık, insan", "tr-TR", "IŞIK, İNSAN"),
        ("ß", "de", "SS"),
    ],
)
def test_capitals(text: str, language: str, expected: str) -> None:
    assert with_capitals(text, language) == expected


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("Blue shirt", "camisa azul", "Camisa azul"),
        ("(Blue shirt)", "(camisa azul)", "(Camisa azul)"),
        ("\u201cBus\u201d:", "\u00abônibus\u00bb:", "\u00abÔnibus\u00bb:"),
        ("Of water", "d'água", "D'água"),
        ("blue shirt", "camisa azul", "camisa azul"),
        ("3 shirts", "camisas", "camisas"),
        ("New phone", "iPhone novo", "iPhone novo"),
        ("Website", "example.org", "example.org"),
        ("See there", "https://example.org", "https://example.org"),
        ("Ampersand", "&amp; e", "&amp; e"),
        ("The X1", "x1", "x1"),
        ("Shirt", "...", "..."),
        ("Shirt", "", ""),
    ],
)
def test_first_capital(text: str, answer: str, expected: str) -> None:
    assert with_first_capital(answer, text, "pt") == expected


def test_first_capital_of_a_language_with_two_kinds_of_i() -> None:
    assert with_first_capital("ince kitap", "Thin book", "tr") == "İnce kitap"


def test_documents_ask_for_small_letters_and_keep_what_is_protected() -> None:
    asked: list[str] = []

    def translate(sentences: Sequence[str]) -> list[str]:
        asked.extend(sentences)
        return [f"ok {sentence}" for sentence in sentences]

    options = DocumentOptions(language="en", target_language="pt")
    text = "# BIG NEWS\n\nWRITE TO me@example.org NOW!\n\nAs usual.\n"
    result = translate_document(text, "markdown", translate, options)
    assert asked == ["Big news", "Write to X1 now!", "As usual."]
    assert result.text == "# OK BIG NEWS\n\nOK WRITE TO me@example.org NOW!\n\nOk As usual.\n"


def test_lines_that_are_taken_as_they_are_stay_in_capitals() -> None:
    result = translate_document("BIG NEWS\n", "lines", lambda texts: texts)
    assert result.text == "BIG NEWS\n"


def lines_of_default_model(lines: Sequence[str]) -> list[str]:
    options = TranslationOptions(beam=1)
    with Translator.load(threads=1) as translator:
        protector = LineProtector(translator, options)
        translations = translator.stream(protector.masked(lines), options)
        return [each.text for each in protector.mended(translations)]


def test_the_default_model_reads_lines_in_capitals() -> None:
    lines = ["HELLO WORLD", "Hello", "WHERE IS THE STATION?"]
    assert lines_of_default_model(lines) == ["OLÁ MUNDO", "Olá", "ONDE ESTÁ A ESTAÇÃO?"]


def test_each_sentence_of_a_line_has_its_own_writing() -> None:
    lines = ["Hello. Green trousers. blue shirt", "", "Sit down. WHERE IS THE STATION?"]
    trousers, nothing, station = lines_of_default_model(lines)
    assert ". Calças verdes. camisa azul" in trousers  # the model writes calças
    assert nothing == ""
    assert station.endswith(". ONDE ESTÁ A ESTAÇÃO?")
