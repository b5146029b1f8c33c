"""Numbers that a translation has lost, and how they come back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bothends.documents import DocumentOptions, translate_document
from bothends.documents.numbers import mend_numbers
from bothends.documents.placeholders import NUMBERED_LETTER
from bothends.text.number_styles import NumberStyles
from bothends.text.numbers import correct_numbers, lost_numbers, without_false_starts


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("It was built in 1997.", "Foi construída em 1997.", []),
        ("It was built in 1997.", "Foi construída em 197.", ["1997"]),
        ("It was built in 1997.", "Foi construída em 19971.", ["1997"]),
        ("It has 9550 books.", "Tem 9.550 livros.", []),
        ("It has 9550 books.", "Tem 9\u00a0550 livros.", []),
        ("In 1999, 250 came.", "Em 1999, 250 vieram.", []),
        ("From 305 to 305.", "De 305 a 306.", ["305", "305"]),
        ("In 2024.", "في ٢٠٢٤.", []),
        # what languages write in their own ways, or spell out
        ("At 10:305, 1,250.75 and 1990s", "x", []),
        ("12 men, COVID-1987, 2019-2020", "doze homens", []),
        ("No number.", "Nenhum 1234.", []),
    ],
)
def test_lost_numbers(source: str, translation: str, lost: list[str]) -> None:
    assert [source[start:end] for start, end, _ in lost_numbers(source, translation)] == lost


EN_PT = NumberStyles.of("en", "pt")


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        # the same value in any style
        ("It has 5,434,012 people.", "Tem 5.434.012 pessoas.", []),
        ("It has 5,434,012 people.", "Tem 5434012 pessoas.", []),
        ("It has 5,434,012 people.", "Tem 5\u00a0434\u00a0012 pessoas.", []),
        ("It costs 1,000.50 or 2.75.", "Custa 1.000,50 ou 2,75.", []),
        ("It costs 1,000.50 or 2.75.", "Custa 1,000.50 ou 2.75.", []),
        ("It took 12.50 seconds.", "Demorou 12,5 segundos.", []),
        # thousands and millions in words, times, several numbers
        ("About 50,000 came.", "Cerca de 50 mil vieram.", []),
        ("Some 1,500,000 came.", "Cerca de 1,5 milhão vieram.", []),
        ("It begins at 10.30.", "Começa às 10h30.", []),
        ("It begins at 9.30 p.m.", "Começa às 21h30.", []),
        ("In rooms 101,102,103.", "Nas salas 101, 102 e 103.", []),
        ("See 1.2.3, 10.0.0.1, 3.5-4.0 and 12.05.2020.", "Ver isso.", []),
        # another value, or none
        ("It has 5,434,012 people.", "Tem 5.434,012 pessoas.", ["5.434.012"]),
        ("It has 4,567 people.", "Tem 4.5567 pessoas.", ["4.567"]),
        ("The ratio is 2.75 to 1.", "A proporção é de 275 a 1.", ["2,75"]),
        ("It weighs 87.7 grams.", "Pesa 87,,7 gramas.", ["87,7"]),
        ("It costs 1,000.50.", "Custa 1.000.50.", ["1.000,50"]),
        ("We saw 5.23 fish.", "Vimos 5, 23 peixes.", ["5,23"]),
        ("About 50,000 came.", "Cerca de 500.000 vieram.", ["50.000"]),
        # the part of a name stays as it is spelled
        ("It needs Python 3.10 now.", "Agora precisa dele.", ["3.10"]),
    ],
)
def test_lost_numbers_with_thousands_and_decimals(
    source: str, translation: str, lost: list[str]
) -> None:
    assert [spelled for _, _, spelled in lost_numbers(source, translation, EN_PT)] == lost
    assert lost_numbers(source, translation) == []  # nothing is known of the languages


@pytest.mark.parametrize(
    ("source", "translation", "corrected"),
    [
        ("It was built in 1997.", "Foi construída em 197.", "Foi construída em 1997."),
        ("It has 9550 books.", "Tem 95.500 livros.", "Tem 9550 livros."),
        ("From 1204 to 5299.", "De 12204 a 52999.", "De 1204 a 5299."),
        ("From 1204 to 5299.", "De 1204 a 52999.", "De 1204 a 5299."),
        # no number, two of them, or another one altogether
        ("It was built in 1997.", "Foi construída então.", None),
        ("It was built in 1997.", "Foi construída em 197 ou 199.", None),
        ("It was built in 1997.", "Foi construída em 2458.", None),
    ],
)
def test_numbers_with_an_error_are_corrected(
    source: str, translation: str, corrected: str | None
) -> None:
    assert correct_numbers(source, translation) == corrected


@pytest.mark.parametrize(
    ("source", "translation", "corrected"),
    [
        ("It had 5,434,012 in 2010.", "Tinha 5.434,012 em 2010.", "Tinha 5.434.012 em 2010."),
        ("The ratio is 2.75 to 1.", "A proporção é de 275 a 1.", "A proporção é de 2,75 a 1."),
        ("From 1,000.50 to 2,345.90.", "De 1.000.50 a 2.345,90.", "De 1.000,50 a 2.345,90."),
        ("From 1,000.50 to 2,345.90.", "De 1.000.50 a 2.34.90.", "De 1.000,50 a 2.345,90."),
        ("From 1,204 to 1,204.", "De 1.204 a 12.204.", "De 1.204 a 1.204."),
        ("It weighs 87.7 grams.", "Pesa 87,,70 gramas.", "Pesa 87,7 gramas."),
        ("It weighs 87.7 grams.", "Pesa muito.", None),
    ],
)
def test_thousands_and_decimals_are_corrected_in_the_style_of_the_translation(
    source: str, translation: str, corrected: str | None
) -> None:
    assert correct_numbers(source, translation, EN_PT) == corrected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("It is 265 years old.", "Tem 2 265 anos.", "Tem 265 anos."),
        ("It is 16.90 here.", "Tem 1 16,90 aqui.", "Tem 16,90 aqui."),
        ("We saw 87.58 fish.", "Vimos 87, 87,58 peixes.", "Vimos 87,58 peixes."),
        ("It had 3,858 rooms.", "Tinha 3 3.858 quartos.", "Tinha 3.858 quartos."),
        # numbers of the source, those that begin no other one, and thousands
        ("It has 2 265-page books.", "Tem 2 265 livros.", None),
        ("It has 3,858 rooms.", "Tem 7 3.858 quartos.", None),
        ("It has 1250 rooms.", "Tem 1 250 quartos.", None),
        ("It has 1,250 rooms.", "Tem 1 250 quartos.", None),
        ("It was on 1 11 2019.", "Foi em 1 11 2019.", None),
    ],
)
def test_digits_that_begin_the_number_after_them_go(
    source: str, translation: str, expected: str | None
) -> None:
    assert without_false_starts(source, translation) == (expected or translation)


def test_an_answer_to_names_has_no_false_starts() -> None:
    (text,) = mend_numbers(
        ["It is 265 years old."],
        ["Tem anos."],
        lambda texts: [f"Tem 2 X1 anos: {len(texts)}."],
        NUMBERED_LETTER,
    )
    assert text == "Tem 265 anos: 1."


class Forgetful:
    """Translates by shouting, and forgets all digits but those of names."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.asked += texts
        return [
            " ".join(
                word if word.startswith("X") else word.strip("0123456789") for word in text.split()
            )
            for text in (text.upper() for text in texts)
        ]


def test_what_cannot_be_corrected_is_asked_again() -> None:
    translate = Forgetful()
    texts = ["go to 305 and 4711", "X1 is 4711", "no number"]
    mended = mend_numbers(texts, translate(texts), translate, NUMBERED_LETTER)
    assert mended == ["GO TO 305 AND 4711", "X1 IS 4711", "NO NUMBER"]
    assert translate.asked[3:] == ["go to X1 and X2", "X1 is X2"]


@pytest.mark.parametrize("second", [["GO X7"], ["GO X1 X1"], []])
def test_an_answer_without_the_names_is_not_used(second: list[str]) -> None:
    mended = mend_numbers(["go to 305"], ["GO"], lambda texts: second, NUMBERED_LETTER)
    assert mended == ["GO"]


@pytest.mark.parametrize(
    ("format", "text"),
    [("text", "Room 305 is here."), ("srt", "1\n00:00:01,000 --> 00:00:02,000\nRoom 305\n")],
)
def test_documents_keep_numbers(format: str, text: str) -> None:
    translated = translate_document(text, format, Forgetful()).text  # type: ignore[arg-type]
    assert "305" in translated
    assert "ROOM" in translated


def test_documents_keep_thousands_and_decimals_in_the_style_of_the_translation() -> None:
    options = DocumentOptions(language="en", target_language="pt-BR")
    translated = translate_document("It has 1,250.75 in all.", "text", Forgetful(), options).text
    assert translated == "IT HAS 1.250,75 IN ALL."


def test_lines_as_they_are_get_nothing_but_the_model() -> None:
    assert "305" not in translate_document("Room 305 is here.", "lines", Forgetful()).text
