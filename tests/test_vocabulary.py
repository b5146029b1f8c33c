"""SentencePiece vocabularies: the text they carry, and the lines that say what is wrong."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from bothends.errors import BothendsError, UsageError
from bothends.text.vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    VOCABULARY,
    SpecialTokens,
    Vocabularies,
    Vocabulary,
    clean_decoded,
    most_tokens,
)
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from corpus_data import make_sentences

SENTENCES = make_sentences(500)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("vocabulary") / VOCABULARY
    return train_vocabulary(SENTENCES, path, VocabularyOptions(size=400))


@pytest.fixture(scope="module")
def lossless(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("lossless") / VOCABULARY
    return train_vocabulary(SENTENCES, path, VocabularyOptions(400, normalisation="identity"))


def foreign_model(**options: Any) -> bytes:
    """A model as a user of SentencePiece might train it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        model_type="bpe",
        vocab_size=150,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def test_special_tokens_have_the_ids_that_models_expect(vocabulary: Vocabulary) -> None:
    assert vocabulary.size == 400
    assert vocabulary.special == SpecialTokens()
    assert vocabulary.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_text_survives(vocabulary: Vocabulary) -> None:
    ids = vocabulary.encode(SENTENCES)
    assert vocabulary.decode(ids) == SENTENCES
    assert vocabulary.decode([np.array(row) for row in ids]) == SENTENCES
    assert min(min(row) for row in ids) > 3, "special tokens are added by the model's side only"


def test_nothing_in_nothing_out(vocabulary: Vocabulary) -> None:
    assert vocabulary.encode([]) == []
    assert vocabulary.decode([]) == []
    assert vocabulary.encode(["", "   "]) == [[], []]
    assert vocabulary.decode([[], [2, 3, 0]]) == ["", ""]


# Characters of UTF-8 text, but controls, line breaks and what SentencePiece takes for a space.
_ONE_LINE = st.characters(
    codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffd\u2581\u2028\u2029"
)


@given(line=st.text(_ONE_LINE))
def test_any_text_survives_without_normalisation(lossless: Vocabulary, line: str) -> None:
    (ids,) = lossless.encode([line])
    assert SpecialTokens().unknown not in ids
    # SentencePiece drops spaces at the ends of a line and repeated ones, in every normalisation.
    assert lossless.decode([ids]) == [re.sub(" +", " ", line).strip(" ")]


@given(line=st.text())
def test_any_text_has_tokens_and_gives_one_line(vocabulary: Vocabulary, line: str) -> None:
    (ids,) = vocabulary.encode([line])
    assert SpecialTokens().unknown not in ids
    assert len(vocabulary.decode([ids])[0].splitlines()) <= 1


def test_bytes_that_spell_a_line_break_do_not_break_the_line(vocabulary: Vocabulary) -> None:
    newline = vocabulary.encode(["a"])[0][:1]
    newline.append(4 + ord("\n"))
    assert vocabulary.pieces(newline)[1] == "<0x0A>"
    assert "\n" not in vocabulary.decode([newline])[0]


@given(data=st.binary(max_size=12))
def test_bytes_that_are_no_text_are_left_out(vocabulary: Vocabulary, data: bytes) -> None:
    """Byte tokens in any order: no U+FFFD, and no control character but the tab."""
    names = [f"<0x{byte:02X}>" for byte in data]
    tokens = [vocabulary._processor.piece_to_id(name) for name in names]
    text = vocabulary.decode([tokens])[0].replace("\t", " ")
    assert not [each for each in text if each in "\ufffd" or unicodedata.category(each) == "Cc"]


@pytest.mark.parametrize(
    ("decoded", "text"),
    [
        ("ba \ufffd bo", "ba bo"),
        ("b\ufffd\ufffda", "ba"),
        ("ba \ufffdbo", "ba bo"),
        ("\ufffd", ""),
        ("ba \x00 bo", "ba bo"),
        ("b\x03\x7f\x96a", "ba"),
        ("ba\tbo", "ba\tbo"),
        ("ba  bo", "ba  bo"),
        ("ba\u2028bo", "ba bo"),
    ],
)
def test_decoded_text_is_cleaned(decoded: str, text: str) -> None:
    assert clean_decoded(decoded) == text


def test_letters_typed_in_two_ways_are_the_same_tokens(vocabulary: Vocabulary) -> None:
    composed, decomposed, wide = vocabulary.encode(["bä", "ba\u0308", "\uff42ä"])
    assert composed == decomposed == wide


def test_half_a_surrogate_pair_is_replaced(vocabulary: Vocabulary) -> None:
    assert vocabulary.encode(["ba \ud83d"]) == vocabulary.encode(["ba ?"])


def test_threads_share_a_vocabulary(vocabulary: Vocabulary) -> None:
    expected = vocabulary.encode(SENTENCES)
    with ThreadPoolExecutor(4) as pool:
        assert all(ids == expected for ids in pool.map(vocabulary.encode, [SENTENCES] * 8))
    assert vocabulary.encode(SENTENCES, threads=2) == expected


def test_training_is_deterministic(vocabulary: Vocabulary, tmp_path: Path) -> None:
    train_vocabulary(SENTENCES, tmp_path / "again", VocabularyOptions(size=400))
    assert (tmp_path / "again").read_bytes() == vocabulary.path.read_bytes()


def test_unknown_characters_without_byte_fallback(tmp_path: Path) -> None:
    options = VocabularyOptions(size=150, byte_fallback=False)
    vocabulary = train_vocabulary(SENTENCES, tmp_path / "model", options)
    assert SpecialTokens().unknown in vocabulary.encode(["漢"])[0]


def test_coverage_decides_which_characters_have_entries(tmp_path: Path) -> None:
    lines = ["abc" * 100] * 100 + ["漢字"]

    def train(coverage: float) -> Vocabulary:
        options = VocabularyOptions(size=270, exact=False, character_coverage=coverage)
        return train_vocabulary(lines, tmp_path / "model", options)

    assert len(train(0.9995).encode(["漢"])[0]) == 1 + 3, "a space and three bytes"
    assert len(train(1.0).encode(["漢"])[0]) == 1 + 1


def test_required_characters_have_entries_though_the_text_lacks_them(tmp_path: Path) -> None:
    # The superscript is normalised to a plain digit, the full-width letter to a plain letter.
    options = VocabularyOptions(size=400, required_characters="Ωß€ ²Ｑ\n")
    vocabulary = train_vocabulary(SENTENCES, tmp_path / VOCABULARY, options)
    entries = set(vocabulary.pieces(range(vocabulary.size)))
    assert {"Ω", "ß", "€", "2", "Q"} <= entries
    before = train_vocabulary(SENTENCES, tmp_path / "other", VocabularyOptions(size=400))
    assert "Ω" not in before.pieces(range(before.size))


def test_digits_can_be_tokens_of_their_own(tmp_path: Path) -> None:
    lines = [f"In {year} there were 1984 of them." for year in range(1900, 2000)] + SENTENCES
    for split, longest in ((True, 1), (False, 4)):
        options = VocabularyOptions(size=420, split_digits=split)
        vocabulary = train_vocabulary(lines, tmp_path / VOCABULARY, options)
        (ids,) = vocabulary.encode(["1984"])
        pieces = vocabulary.pieces(ids)
        assert max(len(re.sub(r"\D", "", piece)) for piece in pieces) == longest


def test_a_line_without_spaces_may_be_very_long(tmp_path: Path) -> None:
    """SentencePiece would stop the whole process at words of 65,536 characters."""
    options = VocabularyOptions(size=265, exact=False)
    assert train_vocabulary(["漢字仮名" * 20_000], tmp_path / "model", options).size == 265


def test_too_large_a_size_names_the_largest_possible(tmp_path: Path) -> None:
    path = tmp_path / VOCABULARY
    with pytest.raises(BothendsError, match=r"size 50000 is too large .* ask for \d+ or") as info:
        train_vocabulary(SENTENCES, path, VocabularyOptions(size=50_000))
    assert not path.exists()
    largest = int(re.findall(r"ask for (\d+)", str(info.value))[0])
    assert train_vocabulary(SENTENCES, path, VocabularyOptions(size=largest)).size == largest
    as_many_as_possible = VocabularyOptions(size=50_000, exact=False)
    assert train_vocabulary(SENTENCES, path, as_many_as_possible).size == largest


@pytest.mark.parametrize(
    ("size", "byte_fallback", "message"),
    [
        (100, True, "special tokens, the 256 bytes and the characters .* alone take 2"),
        (20, False, "size 20 is too small: the special tokens and the characters"),
    ],
)
def test_too_small_a_size_names_what_is_needed(
    tmp_path: Path, size: int, byte_fallback: bool, message: str
) -> None:
    options = VocabularyOptions(size=size, byte_fallback=byte_fallback)
    with pytest.raises(BothendsError, match=message):
        train_vocabulary(SENTENCES, tmp_path / "model", options)


def test_no_text_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="every line is empty"):
        train_vocabulary(["", ""], tmp_path / "model", VocabularyOptions())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(size=4), "vocabulary size 4: too small, four entries are special"),
        (dict(character_coverage=1.5), "character coverage 1.5: expected 0.9 to 1"),
        (dict(normalisation="nfc"), "unknown normalisation 'nfc'; known: nmt_nfkc, nfkc, identity"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        VocabularyOptions(**options)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda model: b"", "damaged, the SentencePiece model is empty"),
        (lambda model: b"not a model", "damaged, or not a SentencePiece model"),
        (lambda model: model[: len(model) // 2], "damaged, or not a SentencePiece model"),
        (
            lambda model: foreign_model(),
            "special tokens pad=-1 unknown=0 start=1 end=2, expected pad=0 unknown=1 start=2 end=3",
        ),
    ],
)
def test_damaged_and_foreign_files(
    vocabulary: Vocabulary, tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / VOCABULARY
    path.write_bytes(damage(vocabulary.path.read_bytes()))
    with pytest.raises(BothendsError, match=f"{re.escape(str(path))}: {message}"):
        Vocabulary.load(path)


def test_what_is_written_for_unknown_is_no_text(vocabulary: Vocabulary, tmp_path: Path) -> None:
    surface = b"\xe2\x02\x02\xe4 "  # field 44 of the settings of the training, field 2
    (tmp_path / "model").write_bytes(vocabulary.model + b"\x12\x05" + surface)
    damaged = Vocabulary.load(tmp_path / "model")
    with pytest.raises(BothendsError, match=r"model: damaged, the SentencePiece model .* no text"):
        damaged.decode([[damaged.special.unknown]])


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="nowhere: no such vocabulary"):
        Vocabulary.load(tmp_path / "nowhere")
    with pytest.raises(BothendsError, match="cannot read the vocabulary: Is a directory"):
        Vocabulary.load(tmp_path)


def test_other_special_tokens_on_request(tmp_path: Path) -> None:
    special = SpecialTokens(pad=3, unknown=0, start=1, end=2)
    path = tmp_path / VOCABULARY
    path.write_bytes(foreign_model(pad_id=3))
    assert Vocabulary.load(path, special).special == special


def test_vocabularies_of_a_directory(vocabulary: Vocabulary, tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match=r"no vocabulary, expected sentencepiece\.model or"):
        Vocabularies.load(tmp_path)
    joint, separate = tmp_path / "joint", tmp_path / "separate"
    for directory in (joint, separate):
        directory.mkdir()
    other = train_vocabulary(SENTENCES, tmp_path / "other", VocabularyOptions(size=300))

    Vocabularies(vocabulary, vocabulary).save(joint)
    Vocabularies(vocabulary, other).save(separate)
    assert [path.name for path in joint.iterdir()] == [VOCABULARY]
    assert Vocabularies.load(joint).joint
    loaded = Vocabularies.load(separate)
    assert not loaded.joint
    assert (loaded.source.size, loaded.target.size) == (400, 300)
    assert loaded.source.path == separate / SOURCE_VOCABULARY

    (separate / TARGET_VOCABULARY).unlink()
    with pytest.raises(BothendsError, match=r"target\.model: no such vocabulary"):
        Vocabularies.load(separate)


def test_loading_imports_nothing_heavy() -> None:
    script = (
        "import sys, bothends.text.vocabulary, bothends.text.pairs, bothends.cli;"
        "print(*{'torch', 'onnxruntime', 'transformers', 'matplotlib'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("\n", 0), done.stderr


def test_no_text_has_more_tokens_than_are_expected(vocabulary: Vocabulary) -> None:
    texts = [each for each in map(chr, range(0x30000)) if unicodedata.decomposition(each)]
    texts += ["a b c", " ", "", "\ufdfa" * 9, "\ud83d", "¼½¾"]
    for text, tokens in zip(texts, vocabulary.encode(texts), strict=True):
        assert len(tokens) <= most_tokens(text)
