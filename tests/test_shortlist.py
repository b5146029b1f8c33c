"""Shortlists: what is learned, what stays reachable, the file, and translations with one."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from bothends.cli import run
from bothends.engines.native import is_built
from bothends.errors import BothendsError, UsageError
from bothends.model.shortlist import SHORTLIST, Shortlist, read_shortlist
from bothends.shortlisting import alignment
from bothends.shortlisting.alignment import learn_table
from bothends.shortlisting.learn import (
    ShortlistOptions,
    always_allowed,
    evenly,
    learn_shortlist,
    measure_coverage,
)
from bothends.storage.digests import DIGESTS, FileRecord, read_digests
from bothends.text.vocabulary import SPACE, Vocabularies
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from bothends.translator import Translator
from tiny_model import sentences, tiny_model

needs_native = pytest.mark.skipif(not is_built(), reason="the native engine is not built")


# --- alignment ---


def table_by_hand(
    sources: list[list[int]], targets: list[list[int]], nobody: int, iterations: int
) -> dict[tuple[int, int], float]:
    """IBM model 1 as its equations say, word by word."""
    table: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            words = {*source, nobody}
            for t in target:
                whole = sum(table[s, t] for s in words)
                for s in words:
                    counts[s, t] += table[s, t] / whole
                    totals[s] += table[s, t] / whole
        table = defaultdict(float, {(s, t): n / totals[s] for (s, t), n in counts.items()})
    return table


@pytest.mark.parametrize("chunk", [1, 40, 1 << 20])
def test_the_table_is_that_of_the_equations(
    chunk: int, random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alignment, "_CHUNK", chunk)
    sources = [random.integers(0, 9, random.integers(1, 7)).tolist() for _ in range(30)]
    targets = [random.integers(0, 7, random.integers(1, 7)).tolist() for _ in range(30)]
    found = learn_table(sources, targets, 9, 7, iterations=3)
    expected = table_by_hand(sources, targets, 9, 3)
    pairs = list(zip(found.sources.tolist(), found.targets.tolist(), strict=True))
    assert set(pairs) == {pair for pair, value in expected.items() if value > 0}
    np.testing.assert_allclose(found.probabilities, [expected[pair] for pair in pairs])


def test_it_finds_which_word_became_which(random: np.random.Generator) -> None:
    """Words become others one by one, and change places."""
    becomes = random.permutation(40)
    sources = [random.integers(0, 40, 6).tolist() for _ in range(400)]
    targets = [becomes[random.permutation(source)].tolist() for source in sources]
    table = learn_table(sources, targets, 40, 40)
    for word in range(40):
        own = table.sources == word
        assert table.targets[own][table.probabilities[own].argmax()] == becomes[word]


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(BothendsError, match="nothing to learn from"):
        learn_table([], [], 5, 5)


def test_items_are_taken_evenly() -> None:
    assert evenly(range(10), 20) == list(range(10))
    assert evenly(range(10), 4) == [0, 2, 5, 7]


# --- what stays reachable ---


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Vocabularies:
    path = tmp_path_factory.mktemp("vocabulary") / "sentencepiece.model"
    options = VocabularyOptions(size=500, exact=False)
    lines = [*sentences(400), "In 2024, 100 % ... of 42 ?! 1999 2000 2001", "(1999) ... 100"]
    joint = train_vocabulary(lines * 3, path, options)
    return Vocabularies(joint, joint)


def test_whatever_spells_the_rest_is_always_allowed(vocabularies: Vocabularies) -> None:
    vocabulary = vocabularies.target
    always = always_allowed(vocabulary)
    for word, piece in enumerate(vocabulary.pieces(range(vocabulary.size))):
        text = piece.removeprefix(SPACE)
        basic = (
            word < 4
            or piece.startswith("<0x")
            or len(text) <= 1
            or not any(each.isalpha() for each in text)
        )
        assert always[word] == basic, piece
    for text in ("2024", "42 % ...", "ü漢", "x"):  # spelled in digits, marks, bytes and letters
        assert always[vocabulary.encode([text])[0]].all()


def test_a_word_may_be_copied_whatever_was_learned(vocabularies: Vocabularies) -> None:
    encoded = vocabularies.source.encode(sentences(50))
    # Every line becomes the same word: nothing that was learned would allow a copy.
    targets = [encoded[0][:1]] * 50
    options = ShortlistOptions(best=1, frequent=0)
    shortlist = learn_shortlist(vocabularies, encoded, targets, options)
    for source in vocabularies.source.encode(sentences(50, seed=9)):
        assert set(source) <= set(shortlist.allowed(source).tolist())


def test_a_copy_is_found_by_its_spelling_between_two_vocabularies(
    vocabularies: Vocabularies, tmp_path: Path
) -> None:
    other = train_vocabulary(
        sentences(300, seed=3), tmp_path / "other.model", VocabularyOptions(size=380, exact=False)
    )
    both = Vocabularies(vocabularies.source, other)
    source, target = both.source.encode(["ba"])[0], both.target.encode(["ba"])[0]
    shortlist = learn_shortlist(both, [source], [target], ShortlistOptions(best=1, frequent=0))
    spelled = {piece: word for word, piece in enumerate(other.pieces(range(other.size)))}
    for word, piece in enumerate(both.source.pieces(range(both.source.size))):
        if piece in spelled:
            assert spelled[piece] in shortlist.allowed([word])


def test_unlikely_words_are_left_out(vocabularies: Vocabularies) -> None:
    sources = vocabularies.source.encode(["ba da", "ba ga", "da ga"] * 9)
    targets = vocabularies.target.encode(["lo ma", "lo mu", "ma mu"] * 9)
    sizes = [
        len(
            learn_shortlist(
                vocabularies, sources, targets, ShortlistOptions(frequent=0, least=least)
            ).words
        )
        for least in (0.0, 0.01, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2]
    with pytest.raises(UsageError, match="least is a probability"):
        ShortlistOptions(least=1.5)


def test_only_the_best_and_the_most_frequent_are_kept(vocabularies: Vocabularies) -> None:
    sources = vocabularies.source.encode(sentences(300, seed=1))
    targets = vocabularies.target.encode(sentences(300, seed=2))
    small, large = (
        learn_shortlist(vocabularies, sources, targets, ShortlistOptions(best=n, frequent=n))
        for n in (2, 20)
    )
    basic = int(always_allowed(vocabularies.target).sum())
    assert (len(small.always), len(large.always)) == (basic + 2, basic + 20)
    # Two that were learned, and the copies: one with a space before it and one without.
    assert np.diff(small.first).max() <= 2 + 2
    low = measure_coverage(small, sources, targets)
    high = measure_coverage(large, sources, targets)
    assert low.covered_tokens < high.covered_tokens <= high.tokens
    assert low.covered_lines < high.covered_lines
    assert low.allowed < high.allowed


# --- the file ---


def random_shortlist(random: np.random.Generator, target_words: int) -> Shortlist:
    counts = random.integers(0, 5, 12)
    lists = [np.sort(random.permutation(target_words)[:count]) for count in counts]
    always = np.sort(random.permutation(target_words)[:6])
    first = np.cumsum([0, *counts])
    return Shortlist(12, target_words, always, first, np.concatenate(lists))


@pytest.mark.parametrize("target_words", [30, 100_000])
def test_a_shortlist_is_read_as_it_was_written(
    target_words: int, random: np.random.Generator, tmp_path: Path
) -> None:
    shortlist = random_shortlist(random, target_words)
    shortlist.write(tmp_path)
    found = read_shortlist(tmp_path, 12, target_words)
    assert found is not None
    for source in ([], [3], [0, 11, 5, 5]):
        expected = set(shortlist.always.tolist())
        for token in source:
            expected |= set(shortlist.words[shortlist.first[token] : shortlist.first[token + 1]])
        assert found.allowed(source).tolist() == sorted(expected)


def test_there_need_not_be_one(tmp_path: Path) -> None:
    assert read_shortlist(tmp_path, 5, 5) is None


def test_a_damaged_file_is_an_error_of_one_line(
    random: np.random.Generator, tmp_path: Path
) -> None:
    """Whatever is done to it: it is refused, or still a list of words of the vocabulary."""
    random_shortlist(random, 30).write(tmp_path)
    content = (tmp_path / SHORTLIST).read_bytes()
    for case in range(300):
        damaged = bytearray(content)
        if case % 2:
            del damaged[int(random.integers(len(damaged))) :]
        else:
            damaged[int(random.integers(len(damaged)))] ^= 1 << int(random.integers(8))
        (tmp_path / SHORTLIST).write_bytes(damaged)
        found, message = None, ""
        try:
            found = read_shortlist(tmp_path, 12, 30)
        except BothendsError as error:
            message = str(error)
        if found is None:
            assert SHORTLIST in message
            assert "\n" not in message
        else:
            assert all(0 <= found.allowed([token]).max() < 30 for token in range(12))


def test_a_shortlist_of_another_model_is_refused(
    random: np.random.Generator, tmp_path: Path
) -> None:
    random_shortlist(random, 30).write(tmp_path)
    with pytest.raises(BothendsError, match="shortlist of another model"):
        read_shortlist(tmp_path, 12, 31)


# --- translating with one ---


@pytest.fixture(scope="module")
def listed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a shortlist that is far too short: its translations suffer."""
    folder = tmp_path_factory.mktemp("listed")
    model = Path(shutil.copytree(tiny_model("2x1", "int8"), folder / "model"))
    for name, seed in (("source", 1), ("target", 2)):
        lines = sentences(300, seed=seed)
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert run(learn_anew(model, folder / "target")) == 0
    return model


def learn_anew(model: Path, target: Path) -> list[str]:
    """The command that learns a shortlist of few words from the lines beside `model`."""
    files = ["--source", str(model.parent / "source"), "--target", str(target)]
    options = "--best 1 --frequent 0 --held-out 25 --beam 1".split()
    return ["shortlist", "--model", str(model), *files, *options]


@needs_native
def test_the_command_reports_coverage_and_records_the_file(
    listed_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(listed_model.parent / "source", tmp_path / "source")
    model = Path(shutil.copytree(listed_model, tmp_path / "model"))
    before = (model / SHORTLIST).read_bytes()
    assert run(learn_anew(model, tmp_path / "source")) == 0
    written, reference, output, same = capsys.readouterr().out.splitlines()
    assert SHORTLIST in written
    assert "of 25 held-out references: 100.00% of" in reference  # a copy is always possible
    assert "translations: " in output
    assert same.endswith(" of 25")
    assert (model / SHORTLIST).read_bytes() != before
    digests = read_digests(model)
    assert digests is not None
    assert digests.files[SHORTLIST] == FileRecord.of(model / SHORTLIST)


@needs_native
def test_too_few_lines_are_an_error(
    listed_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one").write_text("ba\n", encoding="utf-8")
    files = ["--source", str(tmp_path / "one"), "--target", str(tmp_path / "one")]
    assert run(["shortlist", "--model", str(listed_model), *files]) == 1
    assert "hold out fewer" in capsys.readouterr().err


@needs_native
def test_a_sentence_uses_its_own_words_whatever_stands_beside_it(listed_model: Path) -> None:
    lines = sentences(60, seed=5)
    with Translator.load(listed_model, threads=1) as translator:
        assert translator.shortlist is not None
        together = translator.translate(lines, beam=3, n_best=3)
        alone = [translator.translate([line], beam=3, n_best=3)[0] for line in lines]
        for one, other in zip(together, alone, strict=True):
            assert [(each.tokens, each.logprob) for each in one.hypotheses] == [
                (each.tokens, each.logprob) for each in other.hypotheses
            ]
        for each in together:
            allowed = set(translator.shortlist.allowed(each.source_tokens).tolist())
            assert set(each.tokens) <= allowed


@needs_native
def test_it_can_be_left_out(
    listed_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = sentences(60, seed=5)
    plain = Translator.load(tiny_model("2x1", "int8")).translate(lines)
    free = Translator.load(listed_model, shortlist=False)
    assert free.shortlist is None
    assert [each.text for each in free.translate(lines)] == [each.text for each in plain]
    listed = Translator.load(listed_model).translate(lines)
    assert [each.text for each in listed] != [each.text for each in plain]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = ["translate", "--model", str(listed_model), str(tmp_path / "lines")]
    for options, expected in ((["--no-shortlist"], plain), ([], listed)):
        assert run([*arguments, *options]) == 0
        assert capsys.readouterr().out.splitlines() == [each.text for each in expected]


@needs_native
def test_scores_are_of_all_words(listed_model: Path) -> None:
    lines, targets = sentences(10, seed=5), sentences(10, seed=6)
    plain = Translator.load(tiny_model("2x1", "int8")).score(lines, targets)
    listed = Translator.load(listed_model).score(lines, targets)
    assert [each.logprob for each in listed] == [each.logprob for each in plain]


@needs_native
def test_a_draft_saves_steps_and_changes_nothing_else(listed_model: Path) -> None:
    """The draft is read with the sentence's words, and may have others itself."""
    lines = sentences(30, seed=5)
    with Translator.load(listed_model, threads=1) as translator:
        plain = translator.translate(lines, beam=1)
        saved, differing = 0, 0
        for line, expected in zip(lines, plain, strict=True):
            own = translator.translate(line, beam=1, draft=expected.tokens)
            foreign = translator.translate(line, beam=1, draft=plain[0].text)
            differing += sum(each.tokens != expected.tokens for each in (own, foreign))
            saved += own.steps_saved
        assert saved > 0
        assert differing <= 1  # a close call, decided by rounding


def test_another_engine_says_that_it_uses_all_words(
    listed_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Translator.load(listed_model, engine="onnx").shortlist is None
    assert capsys.readouterr().err.count(SHORTLIST) == 1
    Translator.load(listed_model, engine="onnx", shortlist=False)
    assert not capsys.readouterr().err


def test_a_damaged_shortlist_is_noticed_by_its_digest(listed_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(listed_model, tmp_path / "model"))
    assert (model / DIGESTS).is_file()
    content = bytearray((model / SHORTLIST).read_bytes())
    content[-1] ^= 1
    (model / SHORTLIST).write_bytes(content)
    with pytest.raises(BothendsError, match="damaged or exchanged"):
        read_shortlist(model, 1, 1)
