"""Plain text, lines and subtitles; what all formats share: options, reports, size, depth."""

from __future__ import annotations

import doctest
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.documents import (
    FORMATS,
    DocumentFormat,
    DocumentOptions,
    Glossary,
    format_of,
    translate_document,
)
from bothends.documents.plain import needs_no_reading
from bothends.errors import BothendsError, UsageError
from fake_translators import EVERY, identity, reverse, silence, upper

TEXT = """A Title

  - First item. Two sentences!
  * Second item
    1) numbered

This paragraph was wrapped at a column of about
fifty characters. Its second sentence runs over
a line break.

Main Street 5
Some Town

> a quoted line
"""


def test_plain_text_keeps_its_shape() -> None:
    assert translate_document(TEXT, "text", identity).text == TEXT
    result = translate_document(TEXT, "text", upper)
    assert result.text == TEXT.upper()
    assert result.report.sentences == 10


def test_sentences_run_over_wrapped_lines_only() -> None:
    asked: list[str] = []

    def note(sentences: Sequence[str]) -> list[str]:
        asked.extend(sentences)
        return list(sentences)

    translate_document(TEXT, "text", note)
    assert "Its second sentence runs over a line break." in asked
    assert "Main Street 5" in asked
    assert "First item." in asked


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("one two\tthree four\n\tfive six\t\t7\n", "two one\tfour three\n\tsix five\t\t7\n"),
        ("one two. 3 four.\tfive six", "two. one four. 3\tsix five"),
        ("- Name:\tAnn Lee\t\n", "- Name:\tLee Ann\t\n"),
        # rows are no wrapped lines, however long they are
        (f"{'one two ' * 6}a\tb c\nd e\tf g", f"a{' two one' * 6}\tc b\ne d\tg f"),
    ],
)
def test_cells_of_a_table_stand_for_themselves(source: str, expected: str) -> None:
    assert translate_document(source, "text", identity).text == source
    assert translate_document(source, "text", reverse).text == expected
    if not source.startswith("-"):  # a mark of lists, which are no lines
        split = DocumentOptions(split_lines=True)
        assert translate_document(source, "lines", reverse, split).text == expected


@pytest.mark.parametrize("end", ["\n\t", "\t\n"])
def test_tabs_at_the_edges_of_wrapped_lines_are_white_space(end: str) -> None:
    result = translate_document(f"{'one ' * 12}{end}two three", "text", reverse)
    assert result.text.split() == ["three", "two", *["one"] * 12]


def test_line_breaks_come_back_in_proportion() -> None:
    wrapped = "One sentence that was wrapped at some column and\ngoes on here for a few more words."
    result = translate_document(wrapped, "text", reverse)
    first, second = result.text.split("\n")
    assert abs(len(first) - wrapped.index("\n")) <= 5
    assert f"{first} {second}" == " ".join(["Words.", *reversed(wrapped.split()[:-1])])


@settings(deadline=None)
@given(st.text(st.sampled_from(list("aB .!?\n\r\t-*1)>|'\"{}@/。、 日")), max_size=80))
def test_identity_changes_nothing(text: str) -> None:
    for format in ("lines", "text", "srt", "vtt"):
        assert translate_document(text, format, identity).text == text


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=20), max_size=8),
    st.sampled_from(sorted(EVERY)),
    st.booleans(),
)
def test_a_line_in_is_a_line_out(lines: list[str], translator: str, split: bool) -> None:
    text = "\n".join(lines)
    options = DocumentOptions(split_lines=split)
    result = translate_document(text, "lines", EVERY[translator], options)
    assert result.text.count("\n") == text.count("\n")
    empty = [number for number, line in enumerate(lines) if not line.strip()]
    assert all(not result.text.split("\n")[number].strip() for number in empty)


def test_lines_of_several_sentences_are_reported_and_split_on_request() -> None:
    text = "One. Two three.\nFour five.\n"
    plain = translate_document(text, "lines", reverse)
    assert plain.text == "three. Two One.\nfive. Four\n"
    assert plain.report.lines_of_several_sentences == 1
    split = translate_document(text, "lines", reverse, DocumentOptions(split_lines=True))
    assert split.text == "One. three. Two\nfive. Four\n"


SUBTITLES = """\ufeff1
00:00:01,000 --> 00:00:02,500 X1:40 X2:600
<i>Hello there,
my friend.</i>

2
00:00:03.000 --> 00:00:04.000
- Who is it?
- It is {\\an8}<b>me</b> now.

3
00:00:05,000 --> 00:00:06,000

4
00:00:07,000 --> 00:00:08,000
<i>never closed
1984
"""


def test_subtitles_keep_numbers_times_and_lines() -> None:
    assert translate_document(SUBTITLES, "srt", identity).text == SUBTITLES
    result = translate_document(SUBTITLES, "srt", upper)
    kept = ("<i>", "</i>", "<b>", "</b>", "{\\an8}")
    expected = SUBTITLES.upper()
    for tag in kept:
        expected = expected.replace(tag.upper(), tag)
    assert result.text == expected


WEB = """\
WEBVTT - a title that stays
Kind: captions

STYLE
::cue { color: red; }

NOTE a note
that stays

00:01.000 --> 00:02.500 align:start position:0%
<v Ann Lee>one &amp; two,
three</v>

a name
01:00:03.000 --> 01:00:04.000
- who is <c.red.big>it</c>?
- it <00:00:03.500>is me

NOTE stays

00:05.000 --> 00:06.000

00:07.000 --> 00:08.000
<i>never <> closed &lt;3
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_web_subtitles_keep_settings_names_notes_and_styles(end: str) -> None:
    text = WEB.replace("\n", end)
    assert translate_document(text, "vtt", identity).text == text
    expected = text
    for said, written in (
        ("one &amp; two,", "ONE &amp; TWO,"),
        ("three<", "THREE<"),
        ("who is <c.red.big>it<", "WHO IS <c.red.big>IT<"),
        ("it <00:00:03.500>is me", "IT <00:00:03.500>IS ME"),
        ("never <> closed", "NEVER <> CLOSED"),
    ):
        expected = expected.replace(said, written)
    assert translate_document(text, "vtt", upper).text == expected
    spelled = translate_document(text, "vtt", lambda asked: ["a < b & c --> d"] * len(asked)).text
    assert "a &lt; b &amp; c --&gt; d" in spelled
    assert "a < b" not in spelled
    assert spelled.count("-->") == text.count("-->")


@pytest.mark.parametrize("format", ["srt", "vtt"])
def test_a_translation_cannot_break_a_cue(format: DocumentFormat) -> None:
    attack = "x\n\n9\n00:00:01,000 --> 00:00:02,000\ny"
    text = {"srt": SUBTITLES, "vtt": WEB}[format]
    result = translate_document(text, format, lambda asked: [attack] * len(asked))
    assert result.text.count("-->") == text.count("-->")
    assert result.text.count("\n\n") == text.count("\n\n")


def test_long_sentences_are_cut_and_counted() -> None:
    text = "One two three four, five six seven eight; nine ten eleven twelve. Short one."
    asked: list[str] = []

    def note(sentences: Sequence[str]) -> list[str]:
        asked.extend(sentences)
        return list(sentences)

    options = DocumentOptions(max_length=5, length=lambda part: len(part.split()))
    result = translate_document(text, "text", note, options)
    assert result.text == text
    assert result.report.cut_sentences == 1
    assert asked[:2] == ["One two three four,", "five six seven eight;"]


def test_a_document_takes_few_calls() -> None:
    calls: list[int] = []

    def count(sentences: Sequence[str]) -> list[str]:
        calls.append(len(sentences))
        return ["lost"] * len(sentences)

    translate_document("A **b** `c` d. E http://f.g h.\n\n" * 50, "markdown", count)
    assert len(calls) <= 3


def test_an_answer_is_missing() -> None:
    with pytest.raises(BothendsError, match="answered 1 of 2 sentences"):
        translate_document("One.\n\nTwo.", "text", lambda _: ["x"])


KNOWN = "text, markdown, html, srt, vtt"


def test_formats_by_name() -> None:
    names = ["a.md", "B.HTML", "c.srt", "c.VTT", "d.txt", "e", "f.en", "g.htm", "dir.md/h"]
    found = [format_of(name) for name in names]
    assert found == ["markdown", "html", "srt", "vtt", "text", "lines", "lines", "html", "lines"]
    assert (format_of("a.md.gz"), format_of("b.en.gz")) == ("markdown", "lines")
    with pytest.raises(UsageError, match="did you mean markdown"):
        translate_document("x", "markdwn", identity)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x.po", "X.CSV", "x.json.gz", "x.docx", "x.xlf", "x.yml"])
def test_formats_whose_markup_would_be_translated(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        format_of(f"dir/{name}")
    assert str(refusal.value) == (
        f"dir/{name}: not a format that keeps its markup ({KNOWN}); --format lines translates it "
        "line by line, markup included"
    )


def test_the_page_on_documents_is_right() -> None:
    page = Path(__file__).parent.parent / "docs" / "documents.md"
    outcome = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 8
    assert outcome.failed == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    with pytest.raises(
        BothendsError, match=r"html needs the package selectolax.*bothends\[documents\]"
    ):
        translate_document("<p>x</p>", "html", identity)


NESTED = {
    "html": ["<b>", "<div>", "<b>x ", "</b>", "<b>x</b> ", '<a ="', "<p><b>x. ", "<td>", "<code>"],
    "markdown": [
        "> ",
        "- ",
        "*a ",
        "**a** ",
        "[",
        "![",
        "[a](b) ",
        "`a",
        "<b>",
        "| a ",
        "a. B ",
        "<div>",
    ],
    "text": ["a ", "a. ", "(", "{", "`a", "a/", "a.a.", "1.", "<a ", "http://a.b "],
    "vtt": ["<i>", "<c.x> ", "00:01.000 --> 00:02.000\n<v x>a</v> b\n\n"],
    "srt": ["<i>", "1\n00:00:01,000 --> 00:00:02,000\n<i>a</i> b\n\n"],
    "lines": ["a\n", "a. B "],
}


@pytest.mark.parametrize("format", FORMATS)
def test_deep_and_huge_documents_take_linear_time(format: str) -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        result = translate_document(unit * count, format, upper)  # type: ignore[arg-type]
        assert result.text
        return time.process_time() - begin

    for unit in NESTED[format]:
        # Six times the text must not take 36 times as long. Small times are noise, and a busy
        # machine has some of its own: one of three tries will do.
        assert any(seconds(900) < 16 * max(seconds(150), 0.02) for _ in range(3)), unit


@given(
    st.one_of(
        st.from_regex(
            r"[a-zéßяª²]{1,4}((,? |['\u2019-])[a-zäя½x]{1,4}){0,3}[.!?]?", fullmatch=True
        ),
        st.text("aA.,!?'\u2019- x1_@/:", max_size=12),
    )
)
def test_a_text_that_is_one_sentence_is_what_reading_it_would_be(text: str) -> None:
    def double(sentences: Sequence[str]) -> list[str]:
        return [f"  {sentence}  {sentence} \ufffc" for sentence in sentences]

    for translate in (double, list):
        quick = translate_document(text, "text", translate)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bothends.documents.needs_no_reading", lambda *arguments: False)
            read = translate_document(text, "text", translate)
        assert quick == read


def test_most_messages_need_no_reading() -> None:
    for text in ("Where is the station?", "I'm here, you know", "Ça va?", "Wo ist das Tee-Haus?"):
        assert needs_no_reading(text, DocumentOptions(language="en"))
        assert needs_no_reading(text, DocumentOptions(max_length=len(text)))
        assert not needs_no_reading(text, DocumentOptions(max_length=len(text) - 1))
        assert not needs_no_reading(text, DocumentOptions(glossary=Glossary({"a": "b"})))
    for text in ("", "a. b", "a  b", "1 a", "- a", "a\n", "see x.py", "{a}", "a) b", "½"):
        assert not needs_no_reading(text, DocumentOptions())


def test_a_chat_keeps_its_times_and_names() -> None:
    text = """[12:01] Ann: hi! how are you?
31/12/2025, 09:05 - Bob B.: fine
12:02 <ann> I'm hungry \U0001f600 Let's eat at 7 pm. \u2764\ufe0f
--- day changed ---
===
12:30 lunch: soup
"""
    expected = """[12:01] Ann: HI! HOW ARE YOU?
31/12/2025, 09:05 - Bob B.: FINE
12:02 <ann> I'M HUNGRY \U0001f600 LET'S EAT AT 7 PM. \u2764\ufe0f
--- DAY CHANGED ---
===
12:30 LUNCH: SOUP
"""
    asked: list[str] = []

    def spoken(sentences: Sequence[str]) -> Sequence[str]:
        asked.extend(sentences)
        return upper(sentences)

    assert translate_document(text, "text", identity).text == text
    result = translate_document(text, "text", spoken)
    assert result.text == expected
    assert not set("".join(asked)) & set("\U0001f600\u2764=<>[]")
    assert "day changed" in asked


def test_symbols_that_no_vocabulary_has_are_not_lost() -> None:
    def lossy(sentences: Sequence[str]) -> list[str]:
        return ["".join(c for c in sentence.upper() if c.isascii()) for sentence in sentences]

    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    text = f"\u266a I love \u2764\ufe0f you {family}"
    assert translate_document(text, "text", lossy).text == text.replace("love", "LOVE").replace(
        "I love", "I LOVE"
    ).replace("you", "YOU")


def test_who_speaks_in_subtitles_and_what_sounds() -> None:
    text = """1
00:00:01,000 --> 00:00:02,000
[door opens]
TOM: I am tired (so
very tired) of
it.
- no
ANN B.: why?
"""
    asked: list[str] = []

    def spoken(sentences: Sequence[str]) -> Sequence[str]:
        asked.extend(sentences)
        return upper(sentences)

    assert translate_document(text, "srt", spoken).text == text.upper()
    assert asked == ["I am tired (so very tired) of it.", "no", "why?", "door opens"]


def test_sounds_keep_their_brackets_and_place() -> None:
    cases = {
        "[door closes] hello there": "[closes door] there hello",
        "[ a b ]": "[ b a ]",
        "(a b) c d": "(b a) d c",
        "one two [a b] three": "three [b a] two one",
        "one two. [a b]": "two. one [b a]",
        "Is it? (a b) It is": "It? Is (b a) Is It",
        "- [a b] c d": "- [b a] d c",
        "[a b] [c d]\none two": "[b a] [d c]\ntwo one",
        "[ANN]: one two": "[ANN]: two one",
        "(a b): c d": "(b a): d c",
        "TOM (a b): c d": "TOM (b a): d c",
        "- TOM [a b]: c d": "- TOM [b a]: d c",
        "<i>[a b] c d</i>": "<i>[b a] d c</i>",
        "{\\an8}[a b]\n♪ (c d) ♪": "{\\an8}[b a]\n♪ (d c) ♪",
        "one [a\nb] two": "two [b\na] one",
        # said, or nothing to translate
        "come (a b) on": "on b) (a come",
        "[...] one [12] two": "[...] two [12] one",
        "kno[w it": "it kno[w",
        "the word[s] here": "here word[s] the",
    }
    asked: list[str] = []

    def note(sentences: Sequence[str]) -> Sequence[str]:
        asked.append("|".join(sentences))
        return reverse(sentences)

    heads: dict[DocumentFormat, str] = {
        "srt": "00:00:01,000 --> 00:00:02,000\n",
        "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n",
    }
    for format, head in heads.items():
        for cue, expected in cases.items():
            if format == "srt" or "{" not in cue:  # positions in braces are of SRT
                assert translate_document(head + cue, format, note).text == head + expected
                assert translate_document(head + cue, format, identity).text == head + cue
    assert asked[0] == "hello there|door closes"
    assert translate_document(heads["srt"] + "[a b]", "srt", silence).text == heads["srt"] + "[a b]"


@pytest.mark.parametrize("mark", [">>", ">>>", ">> ", "&gt;&gt; "])
def test_marks_of_another_speaker(mark: str) -> None:
    asked: list[str] = []

    def note(sentences: Sequence[str]) -> Sequence[str]:
        asked.extend(sentences)
        return reverse(sentences)

    text = f"00:01.000 --> 00:02.000\n{mark}one two\n{mark}ANN: three\nfour\n"
    translated = translate_document(f"WEBVTT\n\n{text}", "vtt", note).text
    expected = text.replace("one two", "two one").replace("three\nfour", "four\nthree")
    assert translated == f"WEBVTT\n\n{expected}"
    assert asked == ["one two", "three four"]


@pytest.mark.parametrize(
    ("cue", "parts"),
    [
        ("♪ la la ♪\n♪ the sun ♪", ["la la", "the sun"]),
        ("<i>♪ la\nla ♪</i>\n<i>♪ the sun ♪</i>", ["la la", "the sun"]),
        ("<i>- why?</i>\n<i>- no</i>", ["why?", "no"]),
        ("{\\an8}- why?\n{\\an8}TOM: no", ["why?", "no"]),
        ("<i>why\nnot?</i>", ["why not?"]),
    ],
)
def test_lines_of_songs_and_of_speakers_in_italics(cue: str, parts: list[str]) -> None:
    asked: list[str] = []

    def backwards(sentences: Sequence[str]) -> list[str]:
        asked.extend(sentences)
        return [" ".join(reversed(sentence.split(" "))) for sentence in sentences]

    text = f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n"
    translated = translate_document(text, "srt", backwards).text
    assert asked == parts
    assert sorted(translated) == sorted(text)
    assert translate_document(text, "srt", identity).text == text
    marks = re.compile(r"[\w ?]+")
    assert marks.sub("", translated) == marks.sub("", text)


def test_marks_beside_what_is_protected_stay_when_pieces_are_translated() -> None:
    def forgetful(sentences: Sequence[str]) -> list[str]:
        """Loses placeholders and brackets, and ends whatever it is given."""
        return [
            re.sub(r"X\d+|[()]", "", each).strip().rstrip(".").upper() + "." for each in sentences
        ]

    text = "see the docs ({x}): run {y}, then {z}."
    result = translate_document(text, "text", forgetful)
    assert result.text == "SEE THE DOCS ({x}): RUN {y}, THEN {z}."
    assert result.report.fallbacks == 1
