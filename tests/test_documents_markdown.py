"""Markdown: the text changes, the skeleton does not, whatever a translator answers."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.documents import DocumentOptions, translate_document
from bothends.documents.markdown import _FRONT_MATTER, _signature
from bothends.documents.markdown_inline import inline_pieces, make_parser
from fake_translators import EVERY, identity, reverse, upper

TOP = Path(__file__).parent.parent


def markdown_skeleton(text: str) -> list[Any]:
    """What must not change: blocks, code, links, images, tags; not words, nor their order."""
    front = _FRONT_MATTER.match(text)
    head = front[0] if front else ""
    tokens = make_parser().parse(text[len(head) :])
    return [head, *map(_signature, tokens)]


def translate(text: str, name: str = "upper") -> str:
    return translate_document(text, "markdown", EVERY[name]).text


CASES = [
    ("# A *great* title ##\n", "# A *GREAT* TITLE ##\n"),
    ("Title\n=====\n\ntext", "TITLE\n=====\n\nTEXT"),
    ("Some **bold** and `code()`.", "SOME **BOLD** AND `code()`."),
    ('[a link](http://x.y/z "t") here', '[A LINK](http://x.y/z "T") HERE'),
    ("see [ref]\n\n[ref]: http://x.y\n", "SEE [REF][ref]\n\n[ref]: http://x.y\n"),
    ("see [`ref`] and [`ref`][]\n\n[`ref`]: /x\n", "SEE [`ref`] AND [`ref`][]\n\n[`ref`]: /x\n"),
    ("so [`ref` is][]\n\n[`ref` is]: /x\n", "SO [`ref` IS][`ref` is]\n\n[`ref` is]: /x\n"),
    ("see [two\nwords][]\n\n[two words]: /x\n", "SEE [TWO\nWORDS][two words]\n\n[two words]: /x\n"),
    ("- [ ] one\n- [x] two\n  more\n", "- [ ] ONE\n- [x] TWO\n  MORE\n"),
    ("> a quote\n> goes on\n", "> A QUOTE\n> GOES ON\n"),
    (
        "| a | b \\| c |\n|---|:-:|\n| d | `e\\|f` |\n",
        "| A | B \\| C |\n|---|:-:|\n| D | `e\\|f` |\n",
    ),
    ("---\ntitle: x\n---\ntext\n", "---\ntitle: x\n---\nTEXT\n"),
    ("```\ncode\n```\n\n    more code\n", "```\ncode\n```\n\n    more code\n"),
    ("<div>\nraw <b>x</b>\n</div>\n", "<div>\nRAW <b>X</b>\n</div>\n"),
    ("<pre>\nraw\n</pre>\n<script>\nraw\n</script>\n",) * 2,
    ("<p align=center>one\n  two</p>\n\nthree", "<p align=center>ONE\n  TWO</p>\n\nTHREE"),
    ("- <div>\n  raw\n  </div>\n",) * 2,
    ("a <kbd>key</kbd> and <b>bold</b>", "A <kbd>key</kbd> AND <b>BOLD</b>"),
    ("a&nbsp;b &lt;cc d \\*e\\*", "A B \\<CC D \\*E\\*"),
    ("snake_case and a * b", "snake_case AND A \\* B"),
    ("![an image](x.png) and text", "![AN IMAGE](x.png) AND TEXT"),
    ("one  \ntwo\\\nthree", "ONE  \nTWO\\\nTHREE"),
    ("at <http://x.y> now[^1]\n\n[^1]: a note\n", "AT <http://x.y> NOW[^1]\n\n[^1]: A NOTE\n"),
    ("now[^1]\n\n[^1]: note\n", "NOW[^1]\n\n[^1]: note\n"),
    ("So.[^1] Now CO<sub>2</sub>[^2][^3] it", "SO.[^1] NOW CO<sub>2</sub>[^2][^3] IT"),
    ("a\r\nb\r\n\r\nc\r\n", "A\r\nB\r\n\r\nC\r\n"),
    ("***both*** **a *b* c** ~~d~~", "***BOTH*** **A *B* C** ~~D~~"),
    ("<!-- kept -->\n\ntext <!-- kept --> more", "<!-- kept -->\n\nTEXT <!-- kept --> MORE"),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_only_running_text_changes(source: str, expected: str) -> None:
    result = translate_document(source, "markdown", upper)
    assert result.text == expected
    assert result.report.kept_blocks == 0


def test_tags_follow_their_words() -> None:
    source = "Read **the page** or [ask `us` now](http://x.y) first."
    result = translate_document(source, "markdown", reverse)
    assert result.text == "First. [now `us` ask](http://x.y) or **page the** Read"
    assert (result.report.tags, result.report.unplaced_tags) == (2, 0)


def test_a_note_stays_at_a_word() -> None:
    result = translate_document("a word[^1] and[^2][^x] more.[^3] Then", "markdown", reverse)
    assert result.text == "more.[^x][^2] and[^1] word a[^3] Then"
    assert result.report.fallbacks == 0


def test_code_that_touches_words_is_no_fallback() -> None:
    result = translate_document("All `Foo`s and {a}{b} here. 今日は`x`を", "markdown", upper)
    assert result.text == "ALL `Foo`s AND {a}{b} HERE. 今日は`x`を"
    assert result.report.fallbacks == 0


def test_a_tag_keeps_the_marks_at_its_edges() -> None:
    result = translate_document('See ["the page"](x) and *(this)* now.', "markdown", upper)
    assert result.text == 'SEE ["THE PAGE"](x) AND *(THIS)* NOW.'


def test_a_tag_over_two_sentences_stays_one_tag() -> None:
    result = translate_document("A **b c. D e** f g.", "markdown", upper)
    assert result.text == "A **B C. D E** F G."


@pytest.mark.parametrize(
    ("sentence", "translation"),
    [
        ("Something harmless", "# no heading"),
        ("Something harmless", "- no item"),
        ("Something harmless", "12. no item"),
        ("Something harmless", "> no quote"),
        ("something harmless", "no *emphasis* or `code` or <b>tag</b> or [link](x)"),
        ("Something harmless", "=== no title"),
        ("Something harmless", "&amp; &lt; \\* \\\\ ~~no~~ __no__"),
        ("two lines\nof text", "--- ---"),
        ("two lines\nof text", "a ==="),
    ],
)
def test_a_translation_is_only_text(sentence: str, translation: str) -> None:
    result = translate_document(sentence, "markdown", lambda asked: [translation] * len(asked))
    assert markdown_skeleton(result.text) == markdown_skeleton(sentence)
    assert result.report.kept_blocks == 0
    (inline,) = (token for token in make_parser().parse(result.text) if token.type == "inline")
    seen = "".join(child.content or " " for child in inline.children or [])
    assert seen.split() == translation.split()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "![an image](x.png) text ![ref][]\n\n[ref]: y.png\n",
            "![AN IMAGE](x.png) TEXT ![ref][]\n\n[ref]: y.png\n",
        ),
        ("![what a view!](x.png 'a & b')", "![WHAT A VIEW!](x.png 'A & B')"),
        ("![a b][c]\n\n[c]: x.png 'd'", "![A B][c]\n\n[c]: x.png 'd'"),
        ('see [a *b*](x "c d") now', 'SEE [A *B*](x "C D") NOW'),
        ("[![a b](x.png)](y 'c')", "[![A B](x.png)](y 'C')"),
        ("| ![a b](x) |\n|---|\n| [c](y 'd') |", "| ![A B](x) |\n|---|\n| [C](y 'D') |"),
        ('a <img alt="b c" src=x> <a title=d>e</a>', 'A <img alt="B C" src=x> <a title=D>E</a>'),
        ('<p>\n<img alt="b c">\n</p>', '<p>\n<img alt="B C">\n</p>'),
        # nothing for people, or too much markup
        ("![a.png](a.png) ![12](b.png '') [getName](c 'getName')",) * 2,
        ("![*a* b](a.png) <img alt='a b' translate=no>",) * 2,
        ("`![a b](c 'd')` <span title=getName>12</span>",) * 2,
    ],
)
def test_descriptions_and_titles_are_translated(source: str, expected: str) -> None:
    result = translate_document(source, "markdown", upper)
    expected = expected.replace("[getName](", "[GETNAME](")
    assert (result.text, result.report.kept_blocks) == (expected, 0)
    assert translate_document(source, "markdown", identity).text == source


def test_descriptions_and_titles_can_be_left_alone() -> None:
    source = "![a b](x.png 'c') <img alt=d> e"
    result = translate_document(source, "markdown", upper, DocumentOptions(attributes=False))
    assert result.text == "![a b](x.png 'c') <img alt=d> E"


def test_a_description_or_title_that_does_not_fit_leaves_the_text_translated() -> None:
    def translate(sentences: Sequence[str]) -> list[str]:
        return ["`" if sentence == "a b" else sentence.upper() for sentence in sentences]

    # The mark in the title would make code of what stands between it and the one in the text.
    result = translate_document("` [12](y 'a b')! Two words.", "markdown", translate)
    assert (result.text, result.report.kept_blocks) == ("` [12](y 'a b')! TWO WORDS.", 0)


def readmes() -> dict[str, str]:
    """This project's pages and those of installed packages, at most so many characters."""
    own = [TOP / "README.md", *sorted(TOP.glob("docs/*.md"))]
    pages = {path.name: path.read_text()[:9_000] for path in own}
    for distribution in sorted(
        importlib.metadata.distributions(), key=lambda found: found.metadata["Name"].lower()
    ):
        described = distribution.metadata.json
        text = described.get("description")
        markdown = "markdown" in str(described.get("description_content_type"))
        if (
            markdown
            and isinstance(text, str)
            and len(text) < 8_000
            and sum(map(len, pages.values())) < 1.6e5
        ):
            pages[distribution.metadata["Name"]] = text
    return pages


PAGES = readmes()


def test_real_pages_come_back_from_identity_to_the_letter() -> None:
    for name, page in PAGES.items():
        assert translate_document(page, "markdown", identity).text == page, name


@pytest.mark.parametrize("translator", ["upper", "reverse", "garbage"])
def test_real_pages_keep_their_skeleton(translator: str) -> None:
    sentences = kept = 0
    for name, page in PAGES.items():
        result = translate_document(page, "markdown", EVERY[translator])
        assert markdown_skeleton(result.text) == markdown_skeleton(page), name
        sentences += result.report.sentences
        kept += result.report.kept_blocks
    assert sentences > 500
    assert kept < 0.02 * sentences


WORDS = st.sampled_from(
    [
        "word",
        "Word.",
        "two-part",
        "snake_case",
        "3.5",
        "&",
        "<",
        "*",
        "_",
        "`",
        "[",
        "]",
        "!",
        "#",
        "-",
        "1.",
        "|",
        "\\",
        "~",
        "http://x.y/z",
        "{x}",
        "日本語。",
        "é",
    ]
)
TEXT = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
INLINE = st.recursive(
    TEXT,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        inner.map("*{}*".format),
        inner.map("**{}**".format),
        inner.map("[{}](http://x.y)".format),
        inner.map("<b>{}</b>".format),
        inner.map("`{}`".format),
        inner.map("![{}](i.png)".format),
        st.tuples(inner, TEXT).map(lambda pair: '[{}](x.y "{}")'.format(*pair)),
        st.tuples(TEXT, TEXT).map(lambda pair: "<img alt='{}' title={}>".format(*pair)),
        st.tuples(inner, inner).map("\n".join),
        st.tuples(inner, inner).map("  \n".join),
    ),
    max_leaves=6,
)
BLOCK = st.recursive(
    st.one_of(
        INLINE,
        INLINE.map(lambda text: "## " + text.replace("\n", " ")),
        INLINE.map("```\n{}\n```".format),
        INLINE.map("<div>\n{}\n</div>".format),
        st.tuples(INLINE, INLINE).map(
            lambda pair: "| a | b |\n|---|---|\n| {} | {} |".format(
                *(text.replace("\n", " ") for text in pair)
            )
        ),
    ),
    lambda inner: st.one_of(
        inner.map(lambda text: "- " + text.replace("\n", "\n  ")),
        inner.map(lambda text: "> " + text.replace("\n", "\n> ")),
        st.tuples(inner, inner).map("\n\n".join),
        st.tuples(inner, inner).map("\n".join),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(BLOCK, st.sampled_from(sorted(EVERY)))
def test_generated_documents_keep_their_skeleton(text: str, translator: str) -> None:
    result = translate_document(text, "markdown", EVERY[translator])
    assert markdown_skeleton(result.text) == markdown_skeleton(text)
    if translator == "identity":
        assert result.text == text


@settings(max_examples=150, deadline=None)
@given(st.one_of(INLINE, st.text(st.sampled_from(list("ab *_`[]()<>!~\\&;\n:^/")), max_size=30)))
def test_pieces_are_the_content(text: str) -> None:
    pieces = inline_pieces(make_parser(), text, {})
    assert "".join(piece.raw for piece in pieces if hasattr(piece, "raw")) == text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("an area $a_1 * b_2$ or $x$ here", "AN AREA $a_1 * b_2$ OR $x$ HERE"),
        ("costs $5 and $6, or $7 to me, 8$ too", "COSTS $5 AND $6, OR $7 TO ME, 8$ TOO"),
        ("in $$x = \\$y$$ it is", "IN $$x = \\$y$$ IT IS"),
        ("so \\(a_i\\) and \\[a = b\\] hold", "SO \\(a_i\\) AND \\[a = b\\] HOLD"),
        ("this \\[is none\\] here", "THIS \\[IS NONE\\] HERE"),
        ("# A title {#a-title}", "# A TITLE {#a-title}"),
        ('a **word**{.big key="a b"} here', 'A **WORD**{.big key="a b"} HERE'),
        ("some text\n{: .lead }", "SOME TEXT\n{: .lead }"),
        ("see [[wiki link]] or [[a page|label]]", "SEE [[wiki link]] OR [[a page|label]]"),
        ("see [[one]](http://a.b)", "SEE [\\[ONE\\]](http://a.b)"),
        ("text\n::: note Title\ninside\n:::", "TEXT\n::: note Title\nINSIDE\n:::"),
        ("$$\na\n- b\n+ c\n$$\n\ntext", "$$\na\n- b\n+ c\n$$\n\nTEXT"),
        ("\\[\nx\n- b\n\\]\ntext", "\\[\nx\n- b\n\\]\nTEXT"),
        ("$$ is no formula\n\n- it $$", "$$ IS NO FORMULA\n\n- IT $$"),
        (
            '!!! note "A title"\n    Some text\n    here.\n\n    - more\n\n        x\n\nafter',
            '!!! note "A title"\n    SOME TEXT\n    HERE.\n\n    - MORE\n\n        X\n\nAFTER',
        ),
        ("- a\n\n    ???+ tip\n        body", "- A\n\n    ???+ tip\n        BODY"),
        ('=== "Tab"\n\n    text\n\n        code', '=== "Tab"\n\n    TEXT\n\n        code'),
        ("??? what is it?", "??? WHAT IS IT?"),
    ],
)
def test_extensions_stay(source: str, expected: str) -> None:
    result = translate_document(source, "markdown", upper)
    assert (result.text, result.report.kept_blocks) == (expected, 0)
    assert translate_document(source, "markdown", identity).text == source
    for translator in EVERY.values():
        changed = translate_document(source, "markdown", translator).text
        assert markdown_skeleton(changed) == markdown_skeleton(source)
