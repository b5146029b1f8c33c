"""HTML: the text changes, what a browser builds does not, whatever a translator answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends.documents import DocumentOptions, translate_document
from bothends.documents.html import html_skeleton
from bothends.documents.html_scanner import scan_html
from fake_translators import EVERY, identity, reverse, silence, upper

CASES = [
    ("<p>Some <b>bold</b> text.</p>", "<p>SOME <b>BOLD</b> TEXT.</p>"),
    ("<p>a<p>b<br>c", "<p>A<p>B<br>C"),
    ("<p>x <code>y.z()</code> w</p>", "<p>X <code>y.z()</code> W</p>"),
    ("<pre>a\n b</pre><script>a<b</script><style>p{}</style>",) * 2,
    ("<title>a &amp; b</title>", "<title>A &amp; B</title>"),
    ("<!-- a <b> --><!doctype html><?php a ?>",) * 2,
    ("<a href=\"x?a=1&amp;b=2\" title='t'>go</a>", "<a href=\"x?a=1&amp;b=2\" title='T'>GO</a>"),
    ("a < 6 & b &copy; <3", "a < 6 &amp; B &copy; <3"),
    ("all &lt;and & some", "ALL &lt;AND &amp; SOME"),
    ("5 < 6 & 7", "5 < 6 & 7"),  # nothing to translate, nothing touched
    ("<td>a<td>b</table>", "<td>A<td>B</table>"),
    ('<span translate="no">a</span> b', '<span translate="no">a</span> B'),
    (
        "<p class='notranslate x'>a <b>b</b></p><p>c</p>",
        "<p class='notranslate x'>a <b>b</b></p><p>C</p>",
    ),
    ("<b>a <p>b</b> c</p>", "<b>A <p>B</b> C</p>"),
    ("<p>a <i>b. C</i> d</p>", "<p>A <i>B. C</i> D</p>"),
    ("a <x-y>b</x-y>\r\n  c", "A <x-y>B</x-y>\r\n  C"),
    ("<p>a <a name=x></a>b</p>", "<p>A <a name=x></a>B</p>"),
    ("a <img alt='i' src=x> b", "A <img alt='I' src=x> B"),
    ("<textarea>a</textarea><option>b", "<textarea>a</textarea><option>B"),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_only_running_text_changes(source: str, expected: str) -> None:
    result = translate_document(source, "html", upper)
    assert result.text == expected
    assert result.report.kept_blocks == 0


def test_tags_follow_their_words() -> None:
    source = '<p>Read <b>the page</b> or <a href="x">ask <i>us</i> now</a> first.</p>'
    result = translate_document(source, "html", reverse)
    assert result.text == '<p>First. <a href="x">now <i>us</i> ask</a> or <b>page the</b> Read</p>'
    assert (result.report.tags, result.report.unplaced_tags) == (3, 0)


@pytest.mark.parametrize(
    ("source", "expected", "asked"),
    [
        # formulas, powers, years with a note: nothing without their index
        ("in 1950<sup>1</sup> we ran", "ran we 1950<sup>1</sup> in", "in X1 we ran"),
        ("see H<sub>2</sub>O now", "now H<sub>2</sub>O see", "see X1 now"),
        (
            "a C<sub>6</sub>H<SUB class=x>12</SUB>O<sub>6</sub> b",
            "b C<sub>6</sub>H<SUB class=x>12</SUB>O<sub>6</sub> a",
            "a X1 b",
        ),
        ("on 5 m<sup>&#50;</sup>.", "m<sup>&#50;</sup>. 5 on", "on 5 X1."),
        # a note belongs to no word, and stays where it touches one
        (
            "we found<sup><a href='#n'>[1]</a></sup> it",
            "it<sup><a href='#n'>[1]</a></sup> found we",
            "we found X1 it",
        ),
        ("We ran.<sup>1</sup> We saw.", "Ran. We<sup>1</sup> Saw. We", "We ran."),
        # words that are raised, and what touches nothing, are translated
        ("we ran <sup>as</sup> said", "said <sup>as</sup> ran we", "we ran as said"),
        ("the <sup>1</sup> note", "note <sup>1</sup> the", "the 1 note"),
    ],
)
def test_what_is_raised_stays_with_its_word(source: str, expected: str, asked: str) -> None:
    questions: list[str] = []

    def translate(sentences: Sequence[str]) -> Sequence[str]:
        questions.extend(sentences)
        return reverse(sentences)

    result = translate_document(source, "html", translate)
    assert (questions[0], result.report.fallbacks) == (asked, 0)
    assert result.text == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '<p title="a tip">x <img alt="an &quot;i&quot;" src="y z"></p>',
            '<p title="A TIP">X <img alt="AN &quot;I&quot;" src="y z"></p>',
        ),
        (
            "<input placeholder=name aria-label='a &amp; b'>",
            "<input placeholder=NAME aria-label='A &amp; B'>",
        ),
        ("<td title='a'title=\"b\">c", "<td title='A'title=\"B\">C"),
        ("x <img ALT = 'a b'/> <a\ntitle='c'>y</a>", "X <img ALT = 'A B'/> <a\ntitle='C'>Y</a>"),
        ("<p title='one. two?'>", "<p title='ONE. TWO?'>"),
        ("<p title='this > that'>d", "<p title='THIS > THAT'>D"),
        ("<textarea placeholder='a b'>c</textarea>", "<textarea placeholder='A B'>c</textarea>"),
        (
            "a <svg aria-label='b'><title>c</title></svg>",
            "A <svg aria-label='B'><title>c</title></svg>",
        ),
    ],
)
def test_what_people_see_of_attributes_is_translated(source: str, expected: str) -> None:
    result = translate_document(source, "html", upper)
    assert (result.text, result.report.kept_blocks) == (expected, 0)
    assert translate_document(source, "html", identity).text == source


@pytest.mark.parametrize(
    "source",
    [
        # nothing to read
        '<img alt=""><img alt><img alt="12:30 -"><input placeholder="&gt;&#49;">',
        # addresses, files, code
        '<p title="https://a.org/b c.png"><img alt="a/b/c.png"><img alt="{{ site.title }}">',
        '<p title="getName"><p title="get_name()"><img alt="IMG2034"><img alt="x=1">',
        "<script title='a b'></script><code title='a b'>c</code><link title='a b' rel=stylesheet>",
        # other attributes, values that look like attributes, comments
        "<p data-x=' title=\"a b\" ' class='a b' content='a b'><!-- <p title='a b'> -->",
        "<p data-title='a b' x-alt='a b'>",
        # by the word of its author
        "<img alt='a b' translate=no><p translate='no' title='a b'>c</p>",
        "<p class='x notranslate' title='a b'>c</p><div translate=no><img alt='a b'></div>",
        # a quote that is never closed
        '<p title=\'a title="b c"',
        '<p title = \'a title="b c"',
    ],
)
def test_attributes_without_text_for_people_stay(source: str) -> None:
    assert translate_document(source, "html", upper).text == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<!doctype html>\n<html lang="en">a', '<!doctype html>\n<html lang="pt-BR">A'),
        ("<HTML class=x lang=en-US>a", "<HTML class=x lang=pt-BR>A"),
        ("<html lang='en' xml:lang='en'>a", "<html lang='pt-BR' xml:lang='pt-BR'>A"),
        ("<html>a", "<html>A"),
        ('<html lang="fr">a', '<html lang="fr">A'),
        ('<html lang="en" translate="no">a</html>', '<html lang="en" translate="no">a</html>'),
        ('<p lang="en">a</p>', '<p lang="en">A</p>'),
    ],
)
def test_a_page_says_which_language_it_is_in_now(source: str, expected: str) -> None:
    options = DocumentOptions(language="en", target_language="pt_BR")
    assert translate_document(source, "html", upper, options).text == expected


def test_without_languages_a_page_keeps_its_own() -> None:
    assert translate_document('<html lang="en">a', "html", upper).text == '<html lang="en">A'


def test_attributes_can_be_left_alone() -> None:
    source = "<p title='a b'>c <img alt=d></p>"
    result = translate_document(source, "html", upper, DocumentOptions(attributes=False))
    assert result.text == "<p title='a b'>C <img alt=d></p>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p title='a'>", "<p title='&lt;b&gt; &amp; &#x27; \"'>"),
        ('<p title="a">', '<p title="&lt;b&gt; &amp; \' &quot;">'),
        ("<p title=a>", '<p title="&lt;b&gt; &amp; \' &quot;">'),
    ],
)
def test_a_translation_stays_in_its_attribute(source: str, expected: str) -> None:
    result = translate_document(source, "html", lambda asked: ["<b> & ' \""] * len(asked))
    assert result.text == expected


def test_attributes_are_asked_for_with_the_text_and_once() -> None:
    calls: list[list[str]] = []

    def translate(sentences: Sequence[str]) -> Sequence[str]:
        calls.append(list(sentences))
        return upper(sentences)

    translate_document("<p title='a b'>c</p><p title='a b'><img alt='d'>", "html", translate)
    assert calls == [["c", "a b", "d"]]


def test_an_empty_translation_leaves_an_attribute_as_it_is() -> None:
    assert translate_document("<img alt='a b'>", "html", silence).text == "<img alt='a b'>"


WORDS = st.sampled_from(
    [
        "word",
        "Word.",
        "&",
        "<",
        ">",
        "&amp;",
        "&lt;",
        "3.5",
        "http://x.y/z?a=1",
        "{x}",
        "日本語。",
        "é",
        '"q"',
        "'r'",
        "--",
        "]]>",
    ]
)
TEXT = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
INLINE = st.recursive(
    TEXT,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        inner.map("<b>{}</b>".format),
        inner.map('<a href="x&amp;y">{}</a>'.format),
        inner.map("<span class='s'><i>{}</i></span>".format),
        inner.map("<code>{}</code>".format),
        TEXT.map("<img alt=\"{}\" title='{}' placeholder={}>".replace("{}", "{0}").format),
        inner.map("<b>{}".format),
        inner.map("{}</i>".format),
        st.tuples(inner, inner).map("<br>".join),
        st.tuples(inner, inner).map("<!-- c -->".join),
        st.tuples(inner, inner).map("\n  <img src=x>".join),
    ),
    max_leaves=6,
)
PAGE = st.recursive(
    INLINE,
    lambda inner: st.one_of(
        inner.map("<div>{}</div>".format),
        inner.map("<p>{}".format),
        inner.map("<ul><li>{}<li>x</ul>".format),
        inner.map("<table><tr><td>{}</table>".format),
        inner.map("<script>{}</script>".format),
        inner.map("<title>{}</title>".format),
        inner.map("<!doctype html><html><body>{}</body></html>".format),
        st.tuples(inner, inner).map("\n".join),
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(PAGE, st.sampled_from(sorted(EVERY)))
def test_generated_pages_keep_their_skeleton(text: str, translator: str) -> None:
    result = translate_document(text, "html", EVERY[translator])
    assert html_skeleton(result.text) == html_skeleton(text)
    if translator == "identity":
        assert result.text == text


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*"ab <>/!-='\"&;?", "<script>", "</script>", "<!--", "-->"])))
def test_tokens_are_the_page(parts: list[str]) -> None:
    text = "".join(parts)
    assert "".join(token.raw for token in scan_html(text)) == text


def test_the_skeleton_sees_what_must_not_change() -> None:
    page = '<p>a <b>b</b> <a href="x">c</a></p><script>d</script>'
    for change in [("<b>", "<i>"), ('"x"', '"y"'), (">d<", ">e<"), ("<p>", "<div>"), ("</b>", "")]:
        assert html_skeleton(page) != html_skeleton(page.replace(*change))
    assert html_skeleton(page) == html_skeleton(
        '<p>A <a href="x">C</a> <b>B</b></p><script>d</script>'
    )
