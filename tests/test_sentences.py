"""Sentences inside a paragraph: boundaries by language, gaps that lose nothing, cuts at clauses."""

# Marks of other scripts look like ours to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.metrics.sums import _TOKENIZERS
from bothends.serve.libretranslate import NAMES
from bothends.text.abbreviations import _NAMES, _NUMBERS, _STARTERS
from bothends.text.clauses import cut_at_clauses
from bothends.text.languages import _TWO_LETTERS, distance, short_code, web_code
from bothends.text.sentences import Span, holds_several, split_sentences
from bothends.translating.line_job import WITHOUT_SPACES, join_sentences
from bothends.translating.translation import EMPTY, TranslationOptions

NO_SPACES = {"ja", "zh"}

#: language and the sentences of a paragraph
PARAGRAPHS: list[tuple[str, list[str]]] = [
    ("en", ["Mr. Smith went to Washington.", "He met Dr. Jones there."]),
    ("en", ["I like fruit, e.g. apples and pears.", "Do you?"]),
    ("en", ["He lives in the U.S. and works at Acme Inc. in Boston.", "She does not."]),
    ("en", ["He moved to the U.S.", "It was cold."]),
    ("en", ["It costs $3.50 today.", "Tomorrow it costs 4.20."]),
    ("en", ['"Come here."', "She came."]),
    ("en", ['He said "Stop!" and ran.', "Nobody followed."]),
    ("en", ["(This is an aside.)", "This is not."]),
    ("en", ["Wait... what?", "I did not know!"]),
    ("en", ["Well…", "That is that."]),
    ("en", ["J. R. R. Tolkien wrote it.", "George R.R. Martin did not."]),
    ("en", ["Visit www.example.com for more.", "Or mail us."]),
    ("en", ["See Fig. 3 and p. 55 for details.", "Section 2.1 is next."]),
    ("en", ["We start at 5 p.m. today.", "Bring No. 5 with you."]),
    ("en", ["We met at 5 p.m.", "She was late."]),
    ("en", ["Really?!", "Yes."]),
    ("en", ["Apples, pears, etc. are fruit.", "Carrots are not."]),
    ("en", ["We sell apples, pears, etc.", "Carrots are sold elsewhere."]),
    ("en", ["Yahoo! is a company.", "So is Google."]),
    ("en", ["He left on Jan. 5 at noon.", "She left on Feb. 6."]),
    ("en", ["1. Open the box.", "2. Take it out."]),
    ("en", ["This is it.[1]", "And more."]),
    ("en", ["This is it.\ufffc", "And more."]),
    ("en", ["Only one sentence"]),
    ("de", ["Das ist z. B. ein Apfel.", "Das nicht."]),
    ("de", ["Das ist z.B. ein Apfel, d.h. eine Frucht.", "Das nicht."]),
    ("de", ["Am 3. Oktober 1990 war es so weit.", "Dann kam der Winter."]),
    ("de", ["Dr. Müller kam um 8 Uhr.", "Prof. Schmidt kam bzw. ging später."]),
    ("de", ["Im 19. Jahrhundert war das anders.", "Heute nicht."]),
    ("de", ["„Komm her.“", "Sie kam."]),
    ("de", ["Er sagte: „Das geht nicht.“", "Dann ging er."]),
    ("de", ["Die Firma hat ca. 5 Mio. Euro Umsatz.", "Das ist viel."]),
    ("de", ["Siehe Abs. 2 Nr. 5 und S. 12 ff. des Gesetzes.", "Es gilt usw. auch hier."]),
    ("pt", ["O Sr. Silva chegou.", "A Sra. Souza saiu."]),
    ("pt", ["O Dr. João mora na Av. Paulista, n. 5.", "Ele é médico."]),
    ("pt", ["Custa R$ 3,50.", "É barato."]),
    ("pt", ["Comprei frutas, legumes, etc. ontem.", "Foi bom."]),
    ("fr", ["M. Dupont est arrivé.", "Mme. Dupont est partie."]),
    ("fr", ["Il a dit : « Venez ! »", "Puis il est parti."]),
    ("fr", ["Vraiment ?", "Oui !"]),
    ("fr", ["J.-P. Martin habite ici, cf. p. 12.", "Il est grand."]),
    ("es", ["¿Dónde está el Sr. López?", "¡Aquí está!"]),
    ("es", ["Vive en EE. UU. desde 1990.", "Le gusta."]),
    ("es", ["La Dra. García llegó a las 3 p. m. con Ud. ayer.", "Todo bien."]),
    ("it", ["Il Sig. Rossi è arrivato.", "Il Dott. Bianchi no."]),
    ("it", ["Vedi pag. 12, ecc. per altro.", "Poi basta."]),
    ("ro", ["Dl. Popescu a venit.", "Str. Lungă nr. 5 e aici."]),
    ("ro", ["„Vino aici!”", "Ea a venit."]),
    ("ru", ["Он родился в 1990 г. в Москве.", "Потом уехал."]),
    ("ru", ["А. С. Пушкин жил на ул. Мойка.", "Это так, т. е. правда."]),
    ("ru", ["Это яблоки, груши и т. д.", "Они вкусные."]),
    ("ja", ["これはペンです。", "それは本です。"]),
    ("ja", ["「行こう。」と彼は言った。", "私は行った。"]),
    ("ja", ["本当ですか？", "はい！"]),
    ("ja", ["価格は3.5円です。", "安い！"]),
    ("ja", ["彼は言った（笑）。", "そして帰った。"]),
    ("zh", ["你好。", "我很好！"]),
    ("zh", ["他说:“走吧。”", "我走了。"]),
    ("zh", ["他说:“走吧。我们走。”", "我走了。"]),
    ("zh", ["真的吗？！", "是的……好吧。"]),
    ("hi", ["यह एक वाक्य है।", "यह दूसरा है।"]),
    ("el", ["Τι είναι αυτό;", "Είναι ένα βιβλίο."]),
    ("ar", ["هل أنت هنا؟", "نعم."]),
    ("tr", ["Dr. Yılmaz geldi.", "Sonra gitti."]),
    ("nl", ["Dhr. Jansen kwam o.a. gisteren.", "Hij ging weer."]),
    ("pl", ["Prof. Kowalski mieszka przy ul. Długiej.", "To np. dobry adres."]),
]


@pytest.mark.parametrize("told", [True, False], ids=["language", "no language"])
@pytest.mark.parametrize(("language", "sentences"), PARAGRAPHS)
def test_a_paragraph_is_split_into_its_sentences(
    language: str, sentences: list[str], told: bool
) -> None:
    if language == "el" and not told:
        pytest.skip("a Greek question mark is a semicolon elsewhere")
    text = ("" if language in NO_SPACES else " ").join(sentences)
    spans = split_sentences(text, language if told else None)
    assert [text[span.start : span.end] for span in spans] == sentences
    assert holds_several(text, language) == (len(sentences) > 1)


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("eng_Latn", ["Mr. Smith saw Gen. Brown.", "He left on Jan. 5 at noon."]),
        ("deu_Latn", ["Am 3. Oktober kam Hr. Müller.", "Siehe Abs. 2 dazu."]),
        ("ell_Grek", ["Τι είναι αυτό;", "Είναι ένα βιβλίο."]),
        ("de_DE", ["Am 3. Oktober kam Hr. Müller.", "Siehe Abs. 2 dazu."]),
        # In no table: the lists of all languages
        ("ast_Latn", ["Hr. Müller saw Gen. Brown.", "El Sr. Silva chegou."]),
        ("hu", ["Gen. Brown jött.", "Hr. Müller nem."]),
    ],
)
def test_every_spelling_of_a_language_finds_its_rules(language: str, sentences: list[str]) -> None:
    text = " ".join(sentences)
    spans = split_sentences(text, language)
    assert [text[start:end] for start, end in spans] == sentences


def test_codes_of_three_letters_reach_every_table() -> None:
    tables = (_NAMES, _NUMBERS, _STARTERS, _TOKENIZERS, WITHOUT_SPACES, NAMES)
    codes = {code for table in tables for code in table if len(code) == 2}
    assert codes <= set(_TWO_LETTERS.values())
    spellings = {"pt": "pt", "pt-BR": "pt", "PT_br": "pt", "por_Latn": "pt", "yue_Hant": "yue"}
    spellings |= {"pb": "pt", "zt": "zh", "es-419": "es"}
    assert {each: short_code(each) for each in spellings} == spellings


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [
        *(("pt", each, 0) for each in ("pt", "PT", "por", "pt_XX")),
        *((each, "pt-BR", 0) for each in ("pt_BR", "PT-br", "pb", "por_BR")),
        *((each, "pt", 1) for each in ("pt-BR", "pb", "pt-PT", "por_Latn", "pt-Latn-BR")),
        *(("pt", each, 2) for each in ("pt-BR", "pb", "por_Latn", "pt_PT")),
        *((each, "pt-BR", None) for each in ("pt-PT", "es", "es-BR", "", "br", "p")),
        ("es-419", "es-ES", None),
        ("es-419", "es", 1),
        ("sr-Latn", "sr-Cyrl", None),
        # Chinese: by script, which its region tells
        *((each, "zh", 0) for each in ("zh", "zh-Hans", "cmn")),
        *((each, "zh", 1) for each in ("zh-CN", "zh-Hans-SG")),
        *((each, "zh", None) for each in ("zt", "zh-TW", "zh_HK", "zh-Hant")),
        *((each, "zh-Hant", 1) for each in ("zh-TW", "zh-Hant-HK")),
        ("zt", "zh_Hant", 0),
        ("own-code_7", "own-code_7", 0),
    ],
)
def test_how_far_a_language_is_from_another(asked: str, own: str, expected: int | None) -> None:
    assert distance(asked, own) == expected


@pytest.mark.parametrize(
    ("language", "gap"),
    [
        ("jpn_Jpan", ""),
        ("zho_Hans", ""),
        ("yue_Hant", ""),
        ("zh-TW", ""),
        ("eng_Latn", " "),
        (None, " "),
    ],
)
def test_sentences_are_joined_as_their_script_has_it(language: str | None, gap: str) -> None:
    one = replace(EMPTY, text="1")
    assert join_sentences([one, one], TranslationOptions(), language).text == f"1{gap}1"


def test_a_line_break_is_a_space_and_an_empty_line_an_end() -> None:
    text = "  One sentence\nover two lines. \n And one more\n\nno full stop\n"
    spans = split_sentences(text, "en")
    assert [text[a:b] for a, b in spans] == [
        "One sentence\nover two lines.",
        "And one more",
        "no full stop",
    ]


TEXTS = st.text(
    st.one_of(
        st.sampled_from(list(' \n.!?"()[]„“»«。！？「」…;AaBb1.\u2029\ufffc')), st.characters()
    )
)


def with_gaps(text: str, spans: Sequence[Span]) -> list[str]:
    """Gap, sentence, gap, sentence, ..., gap: their concatenation is the text."""
    parts = []
    end = 0
    for span in spans:
        parts += [text[end : span.start], text[span.start : span.end]]
        end = span.end
    return [*parts, text[end:]]


@given(TEXTS, st.sampled_from([None, "en", "de", "el", "ja"]))
def test_sentences_and_gaps_are_the_text(text: str, language: str | None) -> None:
    spans = split_sentences(text, language)
    parts = with_gaps(text, spans)
    assert "".join(parts) == text
    assert all(not gap.strip() for gap in parts[::2])
    assert all(part == part.strip() != "" for part in parts[1::2])


@given(TEXTS, st.integers(1, 12))
def test_parts_fit_and_lose_nothing(text: str, limit: int) -> None:
    for span in split_sentences(text):
        parts = cut_at_clauses(text, span, len, limit)
        assert all(end - start <= limit for start, end in parts)
        assert parts[0].start == span.start
        assert parts[-1].end == span.end
        gaps = pairwise(parts)
        assert all(not text[one.end : two.start].strip() for one, two in gaps)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        (99, ["When it rained, we stayed at home; when it did not, we went out to the sea"]),
        (10, ["When it rained, we stayed at home;", "when it did not, we went out to the sea"]),
        (8, ["When it rained, we stayed at home;", "when it did not,", "we went out to the sea"]),
        (6, ["When it rained, we stayed -", "or went home"]),
    ],
)
def test_a_long_sentence_is_cut_at_clauses(limit: int, parts: list[str]) -> None:
    text = " ".join(parts)
    spans = cut_at_clauses(text, Span(0, len(text)), words, limit)
    assert [text[a:b] for a, b in spans] == parts


@pytest.mark.parametrize("unit", ["a", "a. ", "(", "( a. ", "“你。", "a b ", "1. ", "A. B. ", " "])
def test_time_is_linear(unit: str) -> None:
    def once(text: str) -> float:
        begin = time.process_time()
        for span in split_sentences(text):
            cut_at_clauses(text, span, len, 50)
        return time.process_time() - begin

    def seconds(count: int) -> float:  # the least: whatever else runs only adds to it
        return min(once(unit * count) for _ in range(3))

    # Ten times the text: ten times the time, not a hundred. Small times are noise.
    assert seconds(20_000) < 30 * max(seconds(2_000), 0.01)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("pt", "pt"),
        ("pt_XX", "pt"),
        ("pt_br", "pt-BR"),
        ("por_Latn", "pt"),
        ("zh_TW", "zh-Hant-TW"),
    ],
)
def test_codes_of_pages(language: str, expected: str) -> None:
    assert web_code(language) == expected
