"""Protected spans, placeholders and glossaries: exactly back, exactly once, or another way."""

# Signs look like letters to the linter.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.documents import DocumentOptions, Glossary, translate_document
from bothends.documents.placeholders import STYLES
from bothends.documents.protected import KINDS, find_protected
from bothends.errors import BothendsError, UsageError
from fake_translators import EVERY, each, forget, repeat, reverse, silence, upper

SPANS = [
    ("url", "see https://example.com/a?b=c&d=%20#e.", "https://example.com/a?b=c&d=%20#e"),
    ("url", "(www.example.org/x)", "www.example.org/x"),
    ("url", "an ftp://host/file, too", "ftp://host/file"),
    ("email", "mail first.last+tag@mail.example.org.", "first.last+tag@mail.example.org"),
    ("placeholder", "hello {name}!", "{name}"),
    ("placeholder", "hello {0:.2f} and", "{0:.2f}"),
    ("placeholder", "hello {{ user.name }}!", "{{ user.name }}"),
    ("placeholder", "%(count)d files", "%(count)d"),
    ("placeholder", "copied %s to it", "%s"),
    ("placeholder", "copied %1$s to it", "%1$s"),
    ("placeholder", "in ${HOME} now", "${HOME}"),
    ("placeholder", "in $HOME now", "$HOME"),
    (
        "placeholder",
        "You have {count, plural, =0 {none} one {# file} other {{count} files}} here",
        "{count, plural, =0 {none} one {# file} other {{count} files}}",
    ),
    ("placeholder", "until {date, date, long}.", "{date, date, long}"),
    ("placeholder", "a set {a, b} and {plural, two", None),
    ("placeholder", "hello %{name}!", "%{name}"),
    ("placeholder", "hello #{user.name}!", "#{user.name}"),
    ("placeholder", "hello { $name }!", "{ $name }"),
    ("placeholder", "hello {{{name}}}!", "{{{name}}}"),
    ("placeholder", "hello <%= user.name %>!", "<%= user.name %>"),
    ("placeholder", "hello <?php echo $a->b; ?>!", "<?php echo $a->b; ?>"),
    ("placeholder", "hello [[name]]!", "[[name]]"),
    ("placeholder", "hello %name%!", "%name%"),
    ("placeholder", "the %%SIZE%% of", "%%SIZE%%"),
    ("placeholder", "at __HOST__ now", "__HOST__"),
    ("placeholder", "The :attribute is required.", ":attribute"),
    ("placeholder", "great :+1: work", ":+1:"),
    ("placeholder", "hello $name!", "$name"),
    ("placeholder", "a {string|number} here", "{string|number}"),
    ("placeholder", "a {string | URL} here", "{string | URL}"),
    ("placeholder", "at 10:30:15, 50% of it: yes, 5% to 10% and __bold__ :) :p", None),
    ("escape", r"One line\nAnother", r"\n"),
    ("escape", r"Saved.\r\n\nand left", r"\r\n\n"),
    ("escape", r"Name:\tvalue", r"\t"),
    ("escape", r"with \nabla, .\new, C:\Temp or \\n", None),
    ("tag", 'one <x id="1"/> two', '<x id="1"/>'),
    ("tag", "one </b> two", "</b>"),
    ("code", "run `a b.c()` now", "`a b.c()`"),
    ("code", "run ``a ` b`` now", None),
    ("number", "it weighs 3.5 kg today", "3.5 kg"),
    ("number", "about 1,234.56 € each", "1,234.56 €"),
    ("number", "costs R$ 3,50 now", "R$ 3,50"),
    ("number", "at 20 °C or 5%.", "20 °C"),
    ("number", "3.23x as fast", "3.23x"),
    ("number", "mix ½ cup", "½"),
    ("number", "in 2 ¾ hours", "2 ¾"),
    ("number", "it has 1½ km", "1½ km"),
    ("number", "about 3⁄4 of", "3⁄4"),
    ("notation", "so x² is", "x²"),
    ("notation", "about 10⁻⁶ of", "10⁻⁶"),
    ("symbol", "as they claim.¹ It", "¹"),
    ("number", "5 months or 3 apples", None),
    ("identifier", "call +1 555 123 4567 now", "+1 555 123 4567"),
    ("identifier", "call (555) 123-4567.", "(555) 123-4567"),
    ("identifier", "call +49 (30) 901820, please", "+49 (30) 901820"),
    ("identifier", "call +5511987654321", "+5511987654321"),
    ("identifier", "our 3333-4444 is new", "3333-4444"),
    ("identifier", "at 192.168.1.10.", "192.168.1.10"),
    ("identifier", "at 127.0.0.1:8080, or", "127.0.0.1:8080"),
    ("identifier", "at 2001:db8::ff00:42:8329 or", "2001:db8::ff00:42:8329"),
    ("identifier", "to DE89 3704 0044 0532 0130 00 now", "DE89 3704 0044 0532 0130 00"),
    ("identifier", "to GB29NWBK60161331926819.", "GB29NWBK60161331926819"),
    ("identifier", "ISBN 978-3-16-148410-0.", "978-3-16-148410-0"),
    ("identifier", "ISBN 0-8044-2957-X, old", "0-8044-2957-X"),
    ("identifier", "number 48213097.", "48213097"),
    ("identifier", "invoice INV-2024-0042 is", "INV-2024-0042"),
    ("identifier", "order #4711 is here", "#4711"),
    ("identifier", "needs 3.11.2.", "3.11.2"),
    ("identifier", "is v2.0, and 4.2.0-rc1", "v2.0"),
    ("identifier", "is 4.2.0-rc1 or later", "4.2.0-rc1"),
    ("identifier", "is OpenSSL-1.1.1.", "1.1.1"),
    *(
        ("identifier", f"it is {text} there", None)
        for text in (
            *("2024-05-01", "2024-05-01 10:30", "01.02.2022", "07-08-2020", "2019-2020"),
            *("1,234,567", "1.234.567", "12345.67", "12,345", "0.1234567", "10:30:15", "1987"),
            *("1 of 24", "12 to 1500", "3.5", "1990s", "Room 12B", "std::vector", "COVID-19"),
        )
    ),
    ("identifier", "it was on 01.02.2022.", None),
    ("notation", "we like C# most", "C#"),
    ("notation", "g++, or C++.", "g++"),
    ("notation", "with x^2 it", "x^2"),
    ("notation", "with x^{n+1} it", "x^{n+1}"),
    ("notation", "the Acme® is", "Acme®"),
    ("notation", "if x < 5 then", "x < 5"),
    ("notation", "if p<=0.05, then", "p<=0.05"),
    ("notation", "the heat > 30 is", "> 30"),
    ("notation", "costs = gains", "="),
    ("notation", "in <=v21 there", "<=v21"),
    ("notation", "it is 3×4 here", "3×4"),
    ("notation", "see §5a there", "§5a"),
    ("notation", "max=5 and a C or # or A+ or I", None),
    ("notation", "> 5 of us agree", None),
    ("notation", "it is less (< 5) now", "< 5"),
    ("symbol", "© all of us", "©"),
    ("symbol", "File → Save", "→"),
    ("symbol", "It – or — is “so” … isn’t it?", None),
    ("handle", "ask @some_one now", "@some_one"),
    ("handle", "say #MeToo now", "#MeToo"),
    ("handle", "in C#m or a&#x or # 1", None),
    ("email", "is Ann <ann.b@mail.org> there", "<ann.b@mail.org>"),
    ("url", "see <https://a.org/b> there", "<https://a.org/b>"),
    ("notation", "call some_long_name() now", "some_long_name"),
    ("notation", "the _word_ and ___ and a_", None),
    ("path", "open /usr/share/doc/x.txt.", "/usr/share/doc/x.txt"),
    ("path", "open ~/.bashrc and", "~/.bashrc"),
    ("path", "edit src/main.py, please", "src/main.py"),
    ("path", r"in C:\Users\me\a.txt now", r"C:\Users\me\a.txt"),
    ("path", "the file config.json is", "config.json"),
    ("path", "and/or, 1/2, he/she, A/B", None),
    ("url", "no.url here.And there", None),
]


@pytest.mark.parametrize(("kind", "text", "span"), SPANS)
def test_what_is_protected(kind: str, text: str, span: str | None) -> None:
    found = [text[start:end] for start, end, name in find_protected(text) if name == kind]
    assert found[:1] == ([] if span is None else [span])
    assert kind in KINDS


SENTENCES = [text for _, text, _ in SPANS]


@pytest.mark.parametrize("style", sorted(STYLES))
@pytest.mark.parametrize("translator", sorted(EVERY))
def test_each_span_comes_back_exactly_once(translator: str, style: str) -> None:
    options = DocumentOptions(placeholders=STYLES[style])
    for sentence in SENTENCES:
        result = translate_document(sentence, "text", EVERY[translator], options)
        spans = sorted(sentence[start:end] for start, end, _ in find_protected(sentence))
        for span in set(spans):
            # A translator may write a span of its own; garbage writes {y} and code.
            assert result.text.count(span) == spans.count(span), (sentence, result.text)


def test_signs_stay_as_they_are_spelled() -> None:
    source = "<p>&copy; by us: File &rarr; Save if x &lt; 5 in C#.</p>"
    result = translate_document(source, "html", upper)
    assert result.text == "<p>&copy; BY US: FILE &rarr; SAVE IF x &lt; 5 IN C#.</p>"
    assert translate_document(source, "html", forget).text == source


def test_fallbacks_are_counted() -> None:
    text = "Write to a@b.org now. No span here."
    assert translate_document(text, "text", upper).report.fallbacks == 0
    for translator in (forget, repeat, silence):
        result = translate_document(text, "text", translator)
        assert (result.report.protected_spans, result.report.fallbacks) == (1, 1)
        assert result.text.count("a@b.org") == 1


def test_the_fallback_translates_around_the_span() -> None:
    result = translate_document("Write to a@b.org now.", "text", forget)
    assert result.text == "Write to a@b.org now."
    shout = each(lambda sentence: sentence.upper().replace("X1", ""))
    assert (
        translate_document("Write to a@b.org now.", "text", shout).text == "WRITE TO a@b.org NOW."
    )


def test_an_answer_of_placeholders_alone_has_lost_the_words() -> None:
    lazy = each(lambda text: " ".join(re.findall(r"X\d+", text)) or text.upper())
    result = translate_document("break a@b.org 5 km", "text", lazy)
    assert (result.text, result.report.fallbacks) == ("BREAK a@b.org 5 km", 1)
    # A term of a glossary is a word.
    options = DocumentOptions(glossary=Glossary.parse(["car\tWagen"]))
    assert translate_document("The car", "text", lazy, options).text == "Wagen"


def test_a_placeholder_that_is_in_the_text_already() -> None:
    text = "X1 and x 2 are at http://a.b/c now"
    result = translate_document(text, "text", reverse)
    assert result.text == "Now http://a.b/c at are 2 x and X1"
    assert result.report.fallbacks == 0


def test_kinds_can_be_chosen() -> None:
    options = DocumentOptions(protect=frozenset({"url"}))
    result = translate_document("see http://a.b/c or a@b.org", "text", upper, options)
    assert result.text == "SEE http://a.b/c OR A@B.ORG"
    with pytest.raises(UsageError, match=r"urls.*did you mean url\?"):
        translate_document("x", "text", upper, DocumentOptions(protect=frozenset({"urls"})))


@settings(deadline=None)
@given(st.text(), st.sampled_from(sorted(STYLES)), st.integers(1, 5))
def test_names_are_found_again(text: str, style: str, count: int) -> None:
    chosen = STYLES[style]
    numbers = chosen.numbers(text, count)
    assert numbers is not None
    joined = " ".join([*map(chosen.make, numbers), "|", text])
    found = chosen.find(joined, numbers)
    # Text may end a name's number or double it, but a name that is found is the right one.
    if found is not None:
        assert [index for _, _, index in found] == list(range(count))
    if text.isascii() and not any(character.isalnum() for character in text):
        assert found is not None


GLOSSARY = Glossary.parse(
    ["# terms", "red car\trotes Auto", "car\tWagen", "US\tUSA", "", "äpfel\tapples"]
)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("the red car and the car", ["rotes Auto", "Wagen"]),
        ("Car, CAR, cars, scar", ["Wagen", "WAGEN"]),
        ("US but us", ["USA"]),
        ("red\ncar", ["rotes Auto"]),
        ("Äpfel", ["Apples"]),
    ],
)
def test_terms_match_whole_words_longest_first(text: str, targets: list[str]) -> None:
    assert [match.target for match in GLOSSARY.find(text)] == targets


def test_a_glossary_is_honoured_or_reported() -> None:
    options = DocumentOptions(glossary=GLOSSARY)
    text = "The red car is here. A car."
    kept = translate_document(text, "text", upper, options)
    assert kept.text == "THE rotes Auto IS HERE. A Wagen."
    assert (kept.report.glossary_hits, kept.report.glossary_misses) == (2, 0)
    lost = translate_document(text, "text", each(lambda _: "nothing"), options)
    assert lost.text == "Nothing Nothing"
    assert (lost.report.glossary_hits, lost.report.glossary_misses) == (0, 2)
    assert lost.report.missed_terms == {"red car": 1, "car": 1}


def test_a_translation_that_honours_the_glossary_by_itself_is_taken() -> None:
    def translate(sentences: Sequence[str]) -> list[str]:
        return [s.replace("car", "Wagen") if "car" in s else "placeholder" for s in sentences]

    result = translate_document("A car.", "text", translate, DocumentOptions(glossary=GLOSSARY))
    assert (result.text, result.report.glossary_hits) == ("A Wagen.", 1)


def test_a_search_with_constraints_can_carry_the_glossary() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def translate_with(sentences: Sequence[str], targets: Sequence[Sequence[str]]) -> list[str]:
        asked.extend(zip(sentences, map(tuple, targets), strict=True))
        return ["Ein Wagen." for _ in sentences]

    options = DocumentOptions(glossary=GLOSSARY, translate_with=translate_with)
    result = translate_document("A car. No.", "text", upper, options)
    assert result.text == "Ein Wagen. NO."
    assert asked == [("A car.", ("Wagen",))]
    assert (result.report.glossary_hits, result.report.glossary_misses) == (1, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nonly\n", "line 2: expected source<TAB>target, but there are 0 tabs"),
        (b"a\tb\tc\n", "line 1: expected source<TAB>target, but there are 2 tabs"),
        (b"\n# x\n\tb\n", "line 3: the source is empty"),
        (b"a\t \n", "line 1: the target is empty"),
        (b"a\tb\na\tc\n", "line 2: 'a' has another translation above ('b')"),
        (b"a\tb\n\xff\tb\n", "line 2: not valid UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(BothendsError) as caught:
        Glossary.load(path)
    assert str(caught.value).startswith(f"{path}, {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="no such file"):
        Glossary.load(tmp_path / "none.tsv")
    good = tmp_path / "good.tsv"
    good.write_bytes(b"\xef\xbb\xbfa\tb\r\n")
    assert Glossary.load(good).terms == {"a": "b"}
