"""Words that a vocabulary has no letters for: found, and kept as they are."""

from __future__ import annotations

import pytest

from bothends import Translator
from bothends.documents import DocumentOptions, Glossary, translate_document
from bothends.documents.masked_line import mask_line
from bothends.model.bundled import find_model
from bothends.text.unknown_words import UnknownWords
from bothends.text.vocabulary import Vocabularies
from bothends.translating.protecting import LineProtector
from bothends.translating.translation import TranslationOptions
from fake_translators import forget, upper


@pytest.fixture(scope="module")
def unknown_words() -> UnknownWords:
    return UnknownWords(Vocabularies.load(find_model()).source, "en")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He met Erdoğan's son in İstanbul.", ["Erdoğan", "İstanbul"]),
        ("(Łódź), “Zoë” and Jean-Zoë", ["Łódź", "Zoë", "Zoë"]),
        ("Say שלום or мой друг now", ["שלום", "мой друг"]),
        ("the 寿司, crème brûlée", ["寿司", "crème brûlée"]),
        ("decomposed Zoe\u0308 here", ["Zoe\u0308"]),
        # letters that it has, composed or not, and what is no letter
        ("It\u2019s “Beyoncé” \u2013 Cafe\u0301… 5 m² • ½ 👍🏽 1\ufe0f\u20e3 →", []),
        ("", []),
    ],
)
def test_words_of_unknown_letters(unknown_words: UnknownWords, text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in unknown_words(text)] == words


def test_a_rare_character_of_many_is_no_foreign_word(unknown_words: UnknownWords) -> None:
    chinese = UnknownWords(Vocabularies.load(find_model()).source, "zh")
    assert unknown_words("寿司")
    assert not chinese("寿司")


@pytest.mark.parametrize("format", ["text", "markdown", "html", "srt"])
def test_documents_keep_them(unknown_words: UnknownWords, format: str) -> None:
    options = DocumentOptions(unknown_words=unknown_words)
    head = "1\n00:00:01,000 --> 00:00:02,000\n" if format == "srt" else ""
    for text in ("we met Erdoğan there", "we met Erdoğan."):
        translated = translate_document(head + text, format, upper, options)  # type: ignore[arg-type]
        assert translated.text == head + text.upper().replace("ERDOĞAN", "Erdoğan")
        kept = translate_document(head + text, format, forget, options)  # type: ignore[arg-type]
        assert "Erdoğan" in kept.text
    assert translate_document("Привет, мир!", "text", upper, options).text == "Привет, мир!"


def test_lines_as_they_are_and_the_glossary_come_first(unknown_words: UnknownWords) -> None:
    text = "a crème brûlée"
    lines = DocumentOptions(unknown_words=unknown_words)
    assert translate_document(text, "lines", upper, lines).text == text.upper()
    options = DocumentOptions(
        unknown_words=unknown_words, glossary=Glossary({"crème brûlée": "pudim"})
    )
    assert translate_document(text, "text", upper, options).text == "A pudim"


def test_lines_are_masked(unknown_words: UnknownWords) -> None:
    masked = mask_line("we met Erdoğan there", unknown_words)
    assert masked is not None
    assert masked.text == "we met X1 there"
    assert mask_line("we met Erdoğan there") is None


def test_plain_lines_keep_them() -> None:
    line = "He met Erdoğan there."
    with Translator.load() as translator:
        protector = LineProtector(translator, TranslationOptions(beam=1))
        (asked,) = protector.masked([line])
        assert asked == "He met X1 there."
        (answer,) = protector.mended(translator.translate([asked], beam=1))
        assert "Erdoğan" in answer.text
