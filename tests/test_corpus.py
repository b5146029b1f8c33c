"""Text files as users have them: no line lost or gained, every defect named with its place."""

from __future__ import annotations

import gzip
import os
import random
import re
import tracemalloc
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothends.errors import BothendsError, UsageError
from bothends.text.encoding import CorpusEncoder
from bothends.text.lines import MAX_LINE
from bothends.text.pairs import Filters, SeenPairs, read_batches, read_lines, read_pairs
from bothends.text.vocabulary import Vocabulary
from bothends.text.vocabulary_training import Normalisation, VocabularyOptions, train_vocabulary
from corpus_data import make_sentences, write_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"]),
        ("\ufeffa\n\ufeffb\n".encode(), ["a", "\ufeffb"]),
        ("ä 漢 🙂\n".encode(), ["ä 漢 🙂"]),
    ],
)
def test_lines_end_at_newlines_only(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "zipped.gz").write_bytes(gzip.compress(content))
    (tmp_path / "zipped").write_bytes(gzip.compress(content))
    for name in ("plain", "zipped.gz", "zipped"):
        assert list(read_lines(tmp_path / name)) == lines


@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = write_lines(tmp_path_factory.getbasetemp() / "lines", lines)
    assert list(read_lines(path)) == lines
    assert [len(batch) for batch in read_batches(path, 3)][:-1] == [3] * ((len(lines) - 1) // 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bothends.text.pairs._PIECE", 2)  # so that lines span reads
        assert list(read_lines(path)) == lines


@pytest.mark.parametrize("before", [b"", b"x\ny\n", b"x\n" * 200_000])
def test_a_line_that_is_too_long(before: bytes, tmp_path: Path) -> None:
    """As long as a line of `translate` may be; 50 MB without an end take no such memory."""
    path, number = tmp_path / "text", before.count(b"\n") + 1
    path.write_bytes(before + b"x" * MAX_LINE + b"\nz\n")
    assert [len(line) for line in read_lines(path)][number - 1 :] == [MAX_LINE, 1]
    message = re.escape(f"{path}, line {number}: longer than 1,048,576 bytes")
    path.write_bytes(before + b"x" * (MAX_LINE + 1) + b"\nz\n")
    with pytest.raises(BothendsError, match=message):
        list(read_lines(path))
    path.write_bytes(before + b"x" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(BothendsError, match=message):
            deque(read_batches(path), maxlen=0)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nb\xe4d\n", "line 2 is not UTF-8: byte 0xe4 at position 2; convert"),
        (b"good\ncut \xc3\n", "line 2 is not UTF-8: byte 0xc3 at position 5"),
        (b"a\nb\0c\n", "line 2 has a NUL byte"),
        ("a\nb\n".encode("utf-16"), "line 1 is not UTF-8: byte 0xff at position 1"),
    ],
)
def test_text_that_is_not_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(BothendsError, match=f"{re.escape(str(path))}: {message}"):
        list(read_lines(path))


def test_the_number_of_a_bad_line_counts_earlier_batches(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"fine\n" * 10_000 + b"\xff\n")
    with pytest.raises(BothendsError, match="line 10001 is not UTF-8"):
        list(read_lines(path))


def test_damaged_gzip_files(tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(make_sentences(1000)).encode())
    defects = {
        "cut": whole[: len(whole) // 2],
        "changed": whole[:100] + bytes(100) + whole[200:],
        "plain": b"not compressed\n",
    }
    for name, content in defects.items():
        path = tmp_path / f"{name}.gz"
        path.write_bytes(content)
        with pytest.raises(BothendsError, match=rf"{name}\.gz: damaged or cut off gzip file"):
            list(read_lines(path))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="nowhere: no such file"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(BothendsError, match="cannot be read: Is a directory"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize(("source_lines", "target_lines"), [(3, 2), (0, 1), (20_000, 9_000)])
def test_differing_line_counts(tmp_path: Path, source_lines: int, target_lines: int) -> None:
    source = write_lines(tmp_path / "a.en", ["line"] * source_lines)
    target = write_lines(tmp_path / "a.de", ["line"] * target_lines)
    expected = rf"a\.en has {source_lines} lines but .*a\.de has {target_lines}"
    with pytest.raises(BothendsError, match=expected):
        list(read_pairs(source, target))


@pytest.mark.parametrize(
    ("filters", "lengths", "reason"),
    [
        (Filters(), (1, 1), None),
        (Filters(), (0, 5), "empty"),
        (Filters(), (5, 0), "empty"),
        (Filters(max_length=0, max_ratio=0), (0, 0), "empty"),
        (Filters(max_length=10), (10, 10), None),
        (Filters(max_length=10), (11, 10), "too_long"),
        (Filters(max_length=10), (10, 11), "too_long"),
        (Filters(max_length=10, max_ratio=2), (11, 1), "too_long"),
        (Filters(max_length=0, max_ratio=2), (1000, 500), None),
        (Filters(max_length=0, max_ratio=2), (1001, 500), "ratio"),
        (Filters(max_length=0, max_ratio=2), (500, 1001), "ratio"),
        (Filters(max_length=0, max_ratio=1.5), (2, 3), None),
        (Filters(max_length=0, max_ratio=0), (1, 1000), None),
    ],
)
def test_filters(filters: Filters, lengths: tuple[int, int], reason: str | None) -> None:
    assert filters.refuse(*lengths) == reason
    assert reason is None or reason in filters.reasons


def test_bad_filters() -> None:
    with pytest.raises(
        UsageError, match="maximum length -1: expected a number of tokens, or 0 for no limit"
    ):
        Filters(max_length=-1)
    for ratio in (0.5, -1, float("nan")):
        with pytest.raises(
            UsageError, match=r"maximum ratio .*: expected at least 1, or 0 for no limit"
        ):
            Filters(max_ratio=ratio)


@given(batches=st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abc")))))
def test_duplicates_are_those_of_a_set(batches: list[list[tuple[str, str]]]) -> None:
    seen_pairs, seen = SeenPairs(), set()
    for batch in batches:
        new = seen_pairs.first_time([source for source, _ in batch], [t for _, t in batch])
        for pair, is_new in zip(batch, new, strict=True):
            assert is_new == (pair not in seen)
            seen.add(pair)


def test_duplicates_in_many_batches() -> None:
    numbers = [random.Random(1).randrange(5000) for _ in range(20_000)]
    seen = SeenPairs()
    new = 0
    for start in range(0, len(numbers), 100):
        batch = [str(number) for number in numbers[start : start + 100]]
        new += int(seen.first_time(batch, batch).sum())
    assert new == len(set(numbers))


def test_sides_of_a_pair_do_not_run_into_each_other() -> None:
    seen = SeenPairs()
    assert seen.first_time(["a b", "a"], ["c", "b c"]).tolist() == [True, True]


@pytest.fixture(scope="module", params=["nmt_nfkc", "nfkc", "identity"])
def vocabulary(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Vocabulary:
    normalisation: Normalisation = request.param
    options = VocabularyOptions(size=400, normalisation=normalisation)
    return train_vocabulary(make_sentences(500), tmp_path_factory.mktemp("v") / "model", options)


# Spaces of all kinds, combining characters and word fragments meet more often than in random text.
_WORDS = st.text(
    st.one_of(st.sampled_from("ab ä.  \u3000\t\u200b\u0308\u2581\r"), st.characters(codec="utf-8"))
)


@given(lines=st.lists(_WORDS))
def test_encoding_by_words_equals_encoding_by_lines(
    vocabulary: Vocabulary, lines: list[str]
) -> None:
    assert CorpusEncoder(vocabulary).encode(lines) == vocabulary.encode(lines)


def test_encoder_forgets_and_goes_on(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.text.encoding._REMEMBERED_TOKENS", 10)
    encoder = CorpusEncoder(vocabulary)
    for seed in (1, 2, 1):
        lines = make_sentences(50, seed)
        assert encoder.encode(lines) == vocabulary.encode(lines)


def test_vocabularies_that_cross_spaces_encode_lines(tmp_path: Path) -> None:
    """With entries such as `▁of▁the`, words one by one would give other tokens."""
    import sentencepiece

    with open(tmp_path / "model", "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["ba bo du", "ba bo la"] * 50),
            model_writer=file,
            model_type="bpe",
            vocab_size=30,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            split_by_whitespace=False,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    vocabulary = Vocabulary.load(tmp_path / "model")
    whole, *words = vocabulary.encode(["ba bo", "ba", "bo"])
    assert whole != words[0] + words[1], "the vocabulary is one that tests something"
    assert CorpusEncoder(vocabulary).encode(["ba bo"]) == [whole]


def test_unreadable_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "secret", ["a"])
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(BothendsError, match="secret: cannot be read: Permission denied"):
        list(read_lines(path))
