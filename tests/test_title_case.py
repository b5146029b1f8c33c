"""English headlines: what is taken for one, how it is asked for, and the names that come back."""

from __future__ import annotations

import pytest

from bothends.text.plain_writing import PlainWriting
from bothends.text.title_case import in_title_case, with_names, without_title_case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Best Places to Visit in Europe This Summer", True),
        ("How to Install the Software", True),
        ("WHO Says New Vaccine Works", True),
        ("Government Announces New Tax Plan", True),
        ("Terms of Service", False),  # too short to tell from a name
        ("United Nations Security Council", False),
        ("Bank of the United States of America", False),
        ("Barack Obama, Angela Merkel and Emmanuel Macron", False),
        ("Anna and Bob have gone to New York", False),
        ("Tom Told Mary to Go.", False),  # a sentence of names ends like this, too
        ("how to install it all", False),
        ("", False),
    ],
)
def test_what_is_a_headline(text: str, expected: bool) -> None:
    assert in_title_case(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How to Install the Software", "How to install the software"),
        ("'Why I Left NATO': My iPhone and I", "'Why I left NATO': my iPhone and I"),
        ("Don't Look Now: Mother-In-Law's Tale", "Don't look now: mother-in-law's tale"),
    ],
)
def test_a_headline_as_a_sentence(text: str, expected: str) -> None:
    assert without_title_case(text) == expected


def test_what_comes_back_unchanged_has_its_capitals() -> None:
    source = "Why Obama and Merkel Met on the Moon"
    answer = "Por que obama e merkel se encontraram on the lua"
    assert with_names(answer, source) == "Por que Obama e Merkel se encontraram on the lua"


def test_only_english_has_headlines() -> None:
    text = "How to Install the Software"
    assert PlainWriting("en", "pt").of(text) == "How to install the software"
    assert PlainWriting("de", "pt").of(text) == PlainWriting(None, None).of(text) == text
    assert PlainWriting("en", "pt").restore(text, "Como instalar o software") == (
        "Como instalar o Software"
    )
