"""Filling gaps from text to text: seams, rules, alternatives, errors, and the command."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothends import Translator
from bothends.cli import run
from bothends.errors import UsageError
from bothends.text.ends import GivenEnds
from bothends.text.vocabulary import Vocabulary
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from command_line import error_line
from tiny_model import sentences, tiny_model

#: Of the words that the tiny model has learned to copy.
SOURCE = sentences(40, seed=7)[3]


@cache
def translator(order: str = "2x1") -> Translator:
    return Translator.load(tiny_model(order), threads=1)


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary.load(tiny_model() / "sentencepiece.model")


@pytest.fixture(scope="module")
def plain_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """Without bytes for characters that it does not know."""
    options = VocabularyOptions(size=200, exact=False, byte_fallback=False)
    path = tmp_path_factory.mktemp("plain") / "sentencepiece.model"
    return train_vocabulary(sentences(300), path, options)


# Ends of a text as tokens


@given(
    words=st.lists(st.sampled_from(sentences(30)), min_size=1, max_size=3),
    data=st.data(),
)
@settings(max_examples=200, deadline=None)
def test_a_text_that_is_cut_anywhere_comes_back(words: list[str], data: st.DataObject) -> None:
    """Tokens of the whole, seen between the ends, are the text between them."""
    text = " ".join(words)
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    try:
        ends = GivenEnds(vocabulary(), text[:first], text[last:])
    except UsageError:  # the same words on both sides
        return
    for way in (way for way in ends.ways if not way.opening):
        inside = vocabulary().encode_inside(text[first:last]) if first else None
        gap = inside or vocabulary().encode([text[first:last]])[0]
        middle = ends.middle(way, [*way.prefix, *gap, *way.suffix])
        if middle is not None:
            whole = ends.prefix + middle + ends.suffix
            assert whole.startswith(text[:first])
            assert whole.endswith(text[last:])
            # Spaces at a seam are a matter of which tokens meet; letters are not.
            assert whole.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("prefix", "gap", "suffix", "middle"),
    [
        ("ba", " ki", " da", " ki"),
        ("ba ", " ki", " da", "ki"),
        ("ba", "ki", " da", "ki"),
        ("ba ", "ki", " da", None),  # the given space would be lost
        ("", " ki", " da", "ki"),
        ("ba", " ki", "", " ki"),
        ("ba", "", " da", ""),
        ("ba ", "", " da", None),  # two spaces in a row have no tokens
        ("  ba", " ki", " da  ", " ki"),
        ("", "", "", ""),
    ],
)
def test_spaces_at_the_seams_are_kept(
    prefix: str, gap: str, suffix: str, middle: str | None
) -> None:
    words = vocabulary()
    ends = GivenEnds(words, prefix, suffix)
    tokens = words.encode([gap])[0] if gap.startswith(" ") else words.encode_inside(gap)
    way = ends.ways[0]
    assert ends.middle(way, [*way.prefix, *tokens, *way.suffix]) == middle


def test_a_suffix_may_be_a_word_or_the_rest_of_one() -> None:
    ends = GivenEnds(vocabulary(), "ba", "ki")
    texts = [ends.middle(way, [*way.prefix, *way.suffix]) for way in ends.ways if not way.opening]
    assert texts == [" ", ""]
    stop = GivenEnds(vocabulary(), "ba ", ". ki")
    assert len(stop.ways) == 1  # no space before a full stop


def test_ends_may_be_tokens() -> None:
    prefix, suffix = vocabulary().encode(["ba ki", "da lo"])
    ends = GivenEnds(vocabulary(), prefix, suffix)
    assert (ends.prefix, ends.suffix) == ("ba ki", " da lo")
    assert ends.ways[0].prefix == tuple(prefix)
    with pytest.raises(UsageError, match="suffix: 3 is not a token of text"):
        GivenEnds(vocabulary(), [], [3])


def test_characters_outside_the_vocabulary(plain_vocabulary: Vocabulary) -> None:
    with pytest.raises(UsageError, match=r"prefix: the model's vocabulary has no 'ж' \(U\+0436\)"):
        GivenEnds(plain_vocabulary, "ba жo", "")
    # With bytes there is no such character, and what normalisation changes comes back as it was.
    ends = GivenEnds(vocabulary(), "ж … ²", "")
    assert ends.prefix == "ж … ²"
    assert ends.middle(ends.ways[0], [*ends.ways[0].prefix, *vocabulary().encode(["ba"])[0]]) == (
        " ba"
    )


@pytest.mark.parametrize(
    ("prefix", "suffix", "message"),
    [
        ("ba ki lo", "ki lo ma", "overlap: both have 'ki lo'"),
        ("ba ki", "ba ki", "overlap: both have 'ba ki'"),
        ("ba ki lo ma", "ki lo", "the prefix contains the whole suffix 'ki lo'"),
        ("ki lo", "ba, ki lo! ma", "the suffix contains the whole prefix 'ki lo'"),
    ],
)
def test_words_that_are_given_twice(prefix: str, suffix: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GivenEnds(vocabulary(), prefix, suffix)


def test_one_word_may_stand_on_both_sides() -> None:
    GivenEnds(vocabulary(), "ba ki", "ki lo")


# Filling


@pytest.mark.parametrize("order", ["1x1", "1x2", "2x1", "2x2", "4x1"])
def test_a_model_that_copies_fills_in_what_is_missing(order: str) -> None:
    """Exactly the given ends, and the forced score of the whole."""
    model, exact = translator(order), 0
    for source in [line for line in sentences(30, seed=5) if len(line.split()) >= 4][:8]:
        words = source.split()
        prefix, suffix = words[0] + " ", " " + " ".join(words[-2:])
        fillings = model.fill(source, prefix, suffix, n_best=2)
        best = fillings[0]
        assert best.text == prefix + best.middle + suffix
        exact += best.text == source
        scores = model.score([source] * len(fillings), [list(each.tokens) for each in fillings])
        for filling, score in zip(fillings, scores, strict=True):
            # 1e-4: float32, and sums of other lengths
            assert filling.logprob == pytest.approx(score.logprob, abs=1e-4)
            assert model.vocabularies.target.decode([filling.tokens])[0] == filling.text
        assert fillings == sorted(fillings, key=lambda one: -one.score)
        assert len({each.text for each in fillings}) == len(fillings)
    assert exact  # it has learned for seconds: some of eight, and none with a wrong seam


@pytest.mark.parametrize(
    ("prefix", "suffix"), [("", ""), ("ba", ""), ("", "ki"), ("  ba ", " ki ")]
)
def test_either_end_may_be_missing(prefix: str, suffix: str) -> None:
    (filling,) = translator().fill(SOURCE, prefix, suffix)
    assert filling.text.startswith(prefix)
    assert filling.text.endswith(suffix)
    first, after = filling.gap
    assert 0 <= first <= after <= len(filling.tokens) == len(filling.pieces)


def test_a_prefix_may_end_inside_a_token() -> None:
    """Taken back, so that the word can be the token that it is in the model's own text."""
    words = vocabulary()
    whole, piece = next(
        (token, piece.lstrip("▁"))
        for token, piece in enumerate(words.pieces(range(words.size)))
        if piece.startswith("▁") and len(piece) > 5
    )
    source = f"{piece} ba ki {piece}"
    prefix = f"{piece} ba ki {piece[:3]}"
    ends = GivenEnds(words, prefix, "")
    assert {way.opening for way in ends.ways} >= {"", f"▁{piece[:3]}"}
    fillings = translator().fill(source, prefix, n_best=8, beam=8)
    assert all(each.text.startswith(prefix) for each in fillings)
    assert any(each.tokens[3:] and whole in each.tokens[1:] for each in fillings)


def test_numbers_of_words() -> None:
    for words in (2, 5, 9):
        (filling,) = translator().fill(SOURCE, words=words)
        assert filling.words == len(filling.text.split()) == words
    (filling,) = translator().fill(SOURCE, min_words=7, max_words=8)
    assert 7 <= filling.words <= 8
    assert translator().fill(SOURCE, prefix="ba ki lo", words=4)[0].words == 4


def test_an_exact_length_in_tokens() -> None:
    for length in (3, 6, 11):
        fillings = translator().fill(SOURCE, prefix="ba", length=length, n_best=3)
        assert {len(each.tokens) for each in fillings} == {length}


@pytest.mark.parametrize("order", ["1x1", "1x2", "2x1", "2x2", "4x1"])
@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("ba \U0001f600 ", " lo"),  # bytes
        ("ba\nki", "\nlo"),
        ("\u00a0ba\u00a0", ""),
        ("ba\ud800", "\ud800lo"),  # half a surrogate pair has no UTF-8
        ("\u200bba", "\u200b"),
        ("ba ", " ba"),
        (" ", " "),
        ("é", "e\u0301."),
        ("ж ", " ki"),
        ("… ² ﬁ", " ½"),  # normalised, for the model only
    ],
)
def test_any_characters_are_kept(order: str, prefix: str, suffix: str) -> None:
    for filling in translator(order).fill(SOURCE, prefix, suffix, n_best=3):
        assert filling.text == prefix + filling.middle + suffix
        assert "\ufffd" not in filling.middle


def test_filling_in_the_native_engine() -> None:
    """The same fillings as from ONNX Runtime, in the same int8 but for rounding."""
    pytest.importorskip("bothends.engines.native._native")
    directory = tiny_model("2x1", "int8")
    first, second = (
        Translator.load(directory, threads=1, engine=engine) for engine in ("native", "onnx")
    )
    same = 0
    lines = [line for line in sentences(40, seed=8) if len(line.split()) >= 4][:8]
    for line in lines:
        words = line.split()
        ours, theirs = (
            model.fill(line, words[0], words[-1], exclude=["gigi"])[0] for model in (first, second)
        )
        same += ours.text == theirs.text
        (forced,) = first.score([line], [list(ours.tokens)])
        # 0.1: int8 rounds what a pass over many slots sums in another order than steps do.
        assert ours.logprob == pytest.approx(forced.logprob, abs=0.1)
    assert same >= len(lines) - 1  # a close call, decided by rounding


def test_a_number_of_words_that_cannot_be_is_missed_by_little() -> None:
    (filling,) = translator().fill(SOURCE, prefix="ba ki lo ", words=2)
    assert filling.words > 2


def test_words_that_must_and_must_not_be_there() -> None:
    model, source = translator(), "ba kiga lo dadu mu"
    (best,) = model.fill(source, min_words=4)
    unwanted = best.text.split()[2]
    for filling in model.fill(source, exclude=[unwanted.upper()], n_best=3):
        assert unwanted not in filling.text.split()
    for filling in model.fill(source, prefix=best.text.split()[0], include=["gigi"], n_best=3):
        assert "gigi" in filling.text.split()
    (both,) = model.fill(source, include=["gigi", "momo"], max_length=14)
    assert {"gigi", "momo"} <= set(both.text.split())
    # One that is given already is written once more.
    for filling in model.fill(source, prefix="gigi ba", include=["gigi"], n_best=3):
        assert filling.middle.split().count("gigi") >= 1


def test_alternatives_begin_with_another_word() -> None:
    model, translation = translator(), "ba kiga lo dadu mu"
    found = model.alternatives(translation, translation, "lo dadu", n_best=4)
    assert len(found) == len({each.text for each in found}) > 1
    for each in found:
        assert each.text.startswith("ba kiga ")
        assert each.text.endswith(" mu")
        assert each.middle.split()[0] != "lo"
    by_offsets = model.alternatives(translation, translation, (8, 15), n_best=4)
    assert [each.text for each in by_offsets] == [each.text for each in found]


def test_alternatives_are_never_the_same_again() -> None:
    """Half a word is widened to the word; of a span that begins with a comma, the word counts."""
    model, source = translator(), "ba kiga lo dadu mu"
    for translation, span, word in (
        ("ba kiga lo", (5, 7), "kiga"),
        ("ba, kiga lo", ", kiga", "kiga"),
        ("ba kiga!", "!", ""),
    ):
        found = model.alternatives(source, translation, span, n_best=6)
        assert len({each.text for each in found}) == len(found) > 0
        assert all(each.text != translation for each in found)
        if word:
            assert all(each.middle.strip(" ,").split()[0] != word for each in found)


def test_the_same_words_on_both_sides_of_a_span() -> None:
    translation = "ba kiga lo ba kiga"
    found = translator().alternatives(translation, translation, "lo", n_best=2)
    assert all(each.text.startswith("ba kiga") and each.text.endswith("ba kiga") for each in found)


def test_alternatives_differ_in_their_first_word_as_far_as_they_can() -> None:
    source = "ba kiga lo dadu mu"
    found = translator().alternatives(source, source, "lo dadu", n_best=4)
    firsts = [each.middle.split()[0] for each in found]
    new = len(set(firsts))
    assert new > 1
    assert len(set(firsts[:new])) == new  # those with a new first word come first


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("xyz", "span 'xyz' is not in the translation"),
        ("ba", "span 'ba' occurs 2 times in it"),
        ((3, 3), "span 3:3 is not in the translation, which has 8 characters"),
        ((0, 99), "span 0:99 is not in"),
        ((2, 3), "nothing but spaces"),
    ],
)
def test_bad_spans(span: str | tuple[int, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        translator().alternatives(SOURCE, "ba ki ba", span)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(source=" "), "the source is empty"),
        (dict(source="ba", prefix="ba " * 60), "prefix and suffix have 60 tokens, .* at most 22"),
        (dict(source="ba ki " * 300), "the source has 600 tokens, and at most 512 are taken"),
        (dict(source="ba", n_best=0), "n_best must be a whole number from 1 on"),
        (dict(source="ba", words=0), "words must be a whole number from 1 on"),
        (dict(source="ba", min_words=3, max_words=2), "min_words 3 is more than max_words 2"),
        (dict(source="ba", exclude=["two words"]), "'two words' is more than one word"),
        (dict(source="ba", include=[" "]), "include: an empty word"),
        (dict(source="ba", include=["²"]), "the model's vocabulary writes '²' as '2'"),
        (dict(source="ba", include=["Ba ki"], exclude=["ba"]), "'ba' cannot be both included"),
        (dict(source="ba", exclude=["!"]), "'!' is no word"),
        (dict(source="ba", words=3, max_words=4), "words is an exact number"),
        (dict(source="ba", prefix="ba ki lo", max_words=1), "have 3 words, more than max_words 1"),
        (dict(source="ba", length=9, max_length=8), "length 9 is more than max_length 8"),
        (dict(source="ba", length=2049), "length 2049: at most 2048"),
        (dict(source="ba", prefix="ba ki lo", length=2), "have 3 tokens, .* at most 2"),
        (dict(source="ba", n_best=300), "n_best 300: at most 256"),
        (dict(source="ba", prefix=[2]), "prefix: 2 is not a token of text"),
        (dict(source="ba", suffix=[1]), "suffix: 1 is not a token of text"),
        # one word, which could begin anew, but is long all the same
        (dict(source="ba", prefix="g" * 300), "prefix and suffix have 3.. tokens, .* at most 22"),
        (dict(source="ba", include=["ba"] * 3 + list("dglm")), "more than 4,096 ways"),
        (dict(source="ba", beam=0), "beam must be a whole number"),
    ],
)
def test_bad_requests(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        translator().fill(**arguments)  # type: ignore[arg-type]


def test_an_option_that_is_misspelled() -> None:
    unknown = r"unknown filling option 'word'; did you mean words\?"
    with pytest.raises(TypeError, match=unknown):
        translator().fill("ba", word=2)
    with pytest.raises(TypeError, match=unknown):
        translator().alternatives("ba", "ba", "ba", word=2)


# The command


def test_the_command_prints_texts_or_records(capsys: pytest.CaptureFixture[str]) -> None:
    model, words = ["--model", str(tiny_model())], SOURCE.split()
    ends = ["--source", SOURCE, "--prefix", words[0], "--suffix", words[-1], "--n-best", "2"]
    assert run(["fill", *model, *ends]) == 0
    texts = capsys.readouterr().out.splitlines()
    assert len(texts) == 2
    assert all(text.startswith(words[0]) and text.endswith(words[-1]) for text in texts)
    assert run(["fill", *model, *ends, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["text"] for record in records] == texts
    assert all(r["prefix"] + r["middle"] + r["suffix"] == r["text"] for r in records)


def test_the_command_says_when_a_number_of_words_was_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--source", SOURCE, "--prefix", "ba ki lo ", "--words", "2"]
    assert run(["fill", "--model", str(tiny_model()), *arguments]) == 0
    assert capsys.readouterr().err == "no translation of exactly 2 words was found\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", ""], "the source is empty"),
        (["--source", "ba", "--exclude", "a b"], "more than one word"),
        (["--source", "ba", "--prefix", "ba ki", "--suffix", "ba ki"], "overlap"),
        ([], "Missing option '--source'"),
    ],
)
def test_errors_of_the_command_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, line = error_line(["fill", "--model", str(tiny_model()), *arguments], capsys)
    assert status == 2
    assert message in line


def test_a_directory_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, line = error_line(["fill", "--model", str(tmp_path), "--source", "ba"], capsys)
    assert status == 1
    assert "config.json is missing" in line


def test_the_command_draws_how_the_gap_closes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, picture = SOURCE.split(), tmp_path / "gap.svg"
    ends = ["--source", SOURCE, "--prefix", words[0], "--suffix", words[-1]]
    assert run(["fill", "--model", str(tiny_model()), *ends, "--svg", str(picture)]) == 0
    assert "between given words" in picture.read_text("utf-8")
    capsys.readouterr()
    status, line = error_line(["fill", *ends, "--svg", str(tmp_path)], capsys)
    assert status == 1
    assert "is a directory" in line


def test_alternatives_for_a_character_that_the_vocabulary_drops() -> None:
    from bothends.errors import BothendsError

    # A direction mark is no token of the bundled model: the text is all gap, and may stay empty.
    with suppress(BothendsError):
        found = Translator.load(threads=1).alternatives("a b", "\u202e", (0, 1), max_length=3)
        assert all(each.middle.strip() for each in found)
