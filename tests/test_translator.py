"""The Python API. The oracle is the slow, obvious way: one line at a time."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import bothends.model.bundled
from bothends import BothendsError, Translation, TranslationOptions, Translator, UsageError
from bothends.model.directory import CONFIG, WEIGHTS, read_description
from bothends.model.graph_files import DECODER, ENCODER
from bothends.order import IntArray
from bothends.search.fill import Frame
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores
from bothends.storage.digests import DIGESTS
from bothends.text.repeats import remove_repeats, without_repeated_words
from bothends.text.vocabulary import VOCABULARY
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from bothends.translating.documents import DocumentTranslator
from bothends.translating.files import Watch
from bothends.translating.text_model import TextModel
from bothends.translating.translation import EMPTY
from tiny_model import sentences, tiny_model

#: Lines that a text may have and that some reader somewhere would drop or split.
ODD_LINES = [
    "",
    " ",
    "\t \u3000",
    "\u2028",
    "\u200b",
    "\r",
    "ba\u2028bo\u2029da",
    "ba\tbo\rda\x0b",
    "ba\x00bo",
    "\x00",
    "\ud83d",  # half a surrogate pair
    "é 漢字 🙂",
    "ba " * 100,
]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(tiny_model(), threads=2)


@pytest.fixture(scope="module")
def lines() -> list[str]:
    text = sentences(60, seed=7)
    return [line for pair in zip(text, ODD_LINES * 5, strict=False) for line in pair]


@pytest.fixture(scope="module")
def one_by_one(translator: Translator, lines: list[str]) -> list[Translation]:
    return [translator.translate([line])[0] for line in lines]


def repeats_words(line: str) -> bool:
    return remove_repeats(line.split()) != line.split()


def same(
    translations: list[Translation], expected: list[Translation], rounding: float = 1e-4
) -> None:
    """The same words. Products of another shape may round otherwise, by a few units in 2^-24."""
    assert [each.text for each in translations] == [each.text for each in expected]
    assert [each.tokens for each in translations] == [each.tokens for each in expected]
    logprobs = [each.logprob for each in translations]
    assert logprobs == pytest.approx([each.logprob for each in expected], abs=rounding)


def with_engine(translator: Translator, engine: Any) -> TextModel:
    """The translator's model, run by another engine."""
    model = translator._model
    return replace(model, generator=replace(model.generator, engine=engine))


@pytest.fixture(scope="module")
def short_sighted(translator: Translator) -> Translator:
    """A translator that reads 15 tokens of a line and their end: it has learned 16 positions."""
    description = translator.description
    model = replace(description.model, learned_positions=16)
    description = replace(description, model=model)
    engine = translator._model.generator.engine
    return Translator(engine, description, translator.vocabularies)


class TestLearnedPositions:
    LINE = ", ".join(dict.fromkeys(sentences(12, seed=5)))

    def test_documents_cut_sentences_at_clauses_that_the_model_takes(
        self,
        short_sighted: Translator,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        seen: list[str] = []
        stream = short_sighted.stream

        def watched(lines: list[str], *others: Any, **named: Any) -> Any:
            seen.extend(lines)
            return stream(lines, *others, **named)

        monkeypatch.setattr(short_sighted, "stream", watched)
        documents = DocumentTranslator(short_sighted, TranslationOptions())
        documents.translate(self.LINE, "text")
        documents.summarise()
        assert len(seen) > 1
        assert "".join(seen).replace(" ", "") == self.LINE.replace(" ", "")
        assert "cut" not in capsys.readouterr().err

    def test_the_limit_of_the_model_is_named(self, short_sighted: Translator) -> None:
        (cut,) = short_sighted.translate([self.LINE], split_sentences=False)
        assert cut.truncated
        documents = DocumentTranslator(short_sighted, TranslationOptions(), strict=True)
        with pytest.raises(BothendsError, match="longer than 15 tokens"):
            documents._sentences([self.LINE])
        with pytest.raises(BothendsError, match="longer than 15 tokens"):
            Watch(short_sighted, Mock(), TranslationOptions(), strict=True).see(cut)

    def test_only_who_says_so_cuts_a_source(self, short_sighted: Translator) -> None:
        with pytest.raises(
            BothendsError, match=r"^pair 2: a source of \d+ tokens, .* for 15; leave"
        ):
            short_sighted.score(["ba", self.LINE], ["ba", "ba"])
        generator = short_sighted._model.generator
        (source,) = short_sighted.vocabularies.source.encode([self.LINE])
        frame = Frame.around([], 2, [])
        for use in (
            lambda: generator.score([source], [[5]]),
            lambda: generator.score_each([source], [[[5]]]),
            lambda: generator.fill(source, [frame], SearchOptions()),
            lambda: generator.search([source], SearchOptions()),
        ):
            with pytest.raises(BothendsError, match=r"^a source of \d+ tokens, .* for 15; shorten"):
                use()
        drafted = short_sighted.translate(self.LINE, draft="ba", beam=1, split_sentences=False)
        assert drafted.truncated


class TestTranslate:
    def test_a_line_does_not_depend_on_its_neighbours(
        self, translator: Translator, lines: list[str], one_by_one: list[Translation]
    ) -> None:
        same(translator.translate(lines), one_by_one)
        assert len({each.text for each in one_by_one}) > 30  # else this says nothing

    def test_nor_in_int8(self, lines: list[str]) -> None:
        translator = Translator.load(tiny_model(precision="int8"), precision="int8", threads=2)
        one_by_one = [translator.translate([line])[0] for line in lines]
        # A value between two integers may be rounded to either.
        same(translator.translate(lines), one_by_one, rounding=2e-2)

    @pytest.mark.parametrize("batch_tokens", [1, 40, 100_000])
    def test_nor_on_the_size_of_batches(
        self,
        translator: Translator,
        lines: list[str],
        one_by_one: list[Translation],
        batch_tokens: int,
    ) -> None:
        same(translator.translate(lines, batch_tokens=batch_tokens), one_by_one)

    def test_lines_that_must_become_long_share_a_batch_with_few(
        self, translator: Translator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or a minimum would take many times the memory that a batch is meant to take."""
        batches: list[int] = []
        translate = TextModel.translate

        def counted(self: TextModel, sources: Any, options: Any) -> list[Translation]:
            batches.append(len(sources))
            return translate(self, sources, options)

        monkeypatch.setattr(TextModel, "translate", counted)
        lines = [line for line in set(sentences(12, seed=3)) if len(line.split()) < 8]
        translator.translate(lines, beam=1, batch_tokens=64, min_length=31)
        assert sum(batches) == len(lines) > 4
        assert max(batches) == 2

    @pytest.mark.parametrize("threads", [1, 3])
    def test_nor_on_the_number_of_threads(
        self, lines: list[str], one_by_one: list[Translation], threads: int
    ) -> None:
        same(Translator.load(tiny_model(), threads=threads).translate(lines), one_by_one)

    def test_many_threads_may_share_a_translator(
        self, translator: Translator, lines: list[str], one_by_one: list[Translation]
    ) -> None:
        with ThreadPoolExecutor(4) as callers:
            shifted = list(callers.map(lambda n: translator.translate(lines[n:]), range(8)))
        for first, translations in enumerate(shifted):
            same(translations, one_by_one[first:])

    def test_the_torch_engine_says_the_same(
        self, lines: list[str], one_by_one: list[Translation]
    ) -> None:
        translator = Translator.load(tiny_model(), engine="torch", threads=1)
        same(translator.translate(lines), one_by_one)

    def test_the_torch_engine_leaves_threads_and_gpus_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = torch.get_num_threads()
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # and yet it is not taken
        translator = Translator.load(tiny_model(), engine="torch", threads=before + 1)
        assert torch.get_num_threads() == before
        inside: list[int] = []
        encode = translator._model.generator.engine.encode

        def spy(source: IntArray) -> Any:
            inside.append(torch.get_num_threads())
            return encode(source)

        monkeypatch.setattr(translator._model.generator.engine, "encode", spy)
        translator.translate("ba bo")
        assert inside == [before + 1]
        assert translator._workers._pool.submit(torch.get_num_threads).result() == before
        assert torch.get_num_threads() == before

    @pytest.mark.parametrize(
        ("engine", "device", "message"),
        [
            ("onnx", "cuda", "the onnx engine runs on the CPU, not on cuda: use torch"),
            ("torch", "gpu", "device 'gpu': PyTorch cannot use it"),
        ],
    )
    def test_devices(self, engine: Literal["onnx", "torch"], device: str, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            Translator.load(tiny_model(), engine=engine, device=device)

    @pytest.mark.parametrize("line", ["", " ", "\t \u3000", "\u2028", "\r"])
    def test_an_empty_line_asks_no_network(
        self, translator: Translator, line: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(translator, "_model", with_engine(translator, None))
        (translation,) = translator.translate([line], n_best=3)
        assert translation.text == ""
        assert (translation.steps, translation.tokens, translation.logprob) == (0, (), 0.0)

    def test_equal_lines_are_translated_once(
        self, translator: Translator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second, third = sentences(3, seed=2)
        expected = translator.translate([first, second, third])
        engine = Translator.load(tiny_model(), threads=1)._model.generator.engine
        encode, asked = engine.encode, 0

        def count(source: IntArray) -> Any:
            nonlocal asked
            asked += len(source)
            return encode(source)

        monkeypatch.setattr(engine, "encode", count)
        monkeypatch.setattr(translator, "_model", with_engine(translator, engine))
        found = translator.translate([second, first, "", second, f" {second} ", third, first])
        same(
            found, [expected[number] if number >= 0 else EMPTY for number in (1, 0, -1, 1, 1, 2, 0)]
        )
        assert asked == 3

    def test_no_lines(self, translator: Translator) -> None:
        assert translator.translate([]) == []

    def test_fields_agree(self, translator: Translator, lines: list[str]) -> None:
        vocabulary = translator.vocabularies.target
        order = translator.description.order
        for each in translator.translate(lines, deduplicate=False):
            assert vocabulary.decode([each.tokens]) == [each.text]
            assert list(each.pieces) == vocabulary.pieces(each.tokens)
            normaliser = ((5 + len(each.tokens)) / 6) ** 0.6
            assert each.score == pytest.approx(each.logprob / normaliser)
            if each.steps:
                assert each.time > 0
            if each.steps and each.finished and each.sentences == 1:
                assert each.steps == order.steps(len(each.tokens))

    def test_n_best(self, translator: Translator, one_by_one: list[Translation]) -> None:
        for line in sentences(5, seed=8):
            (best,) = translator.translate([line], n_best=3, deduplicate=False)
            three = best.hypotheses
            assert three[0] is best
            assert len({each.tokens for each in three}) == 3
            assert [each.score for each in three] == sorted((e.score for e in three), reverse=True)
            assert all(each.hypotheses == (each,) for each in three[1:])
            assert best.text == translator.translate([line], deduplicate=False)[0].text
        assert all(each.hypotheses == (each,) for each in one_by_one)

    def test_lengths(self, translator: Translator) -> None:
        lines = sentences(20, seed=9)
        short = translator.translate(lines, max_length=2)
        assert max(len(each.tokens) for each in short) == 2
        assert not all(each.finished for each in short)
        long = translator.translate(lines, min_length=12)
        assert min(len(each.tokens) for each in long) == 12

    def test_the_longest_translation_follows_from_the_line(self) -> None:
        options = TranslationOptions()
        assert [options.limit(length) for length in (1, 10, 512)] == [22, 40, 1044]
        assert TranslationOptions(min_length=50).limit(10) == 50
        assert TranslationOptions(max_length=7).limit(10) == 7

    def test_deduplication(self, translator: Translator) -> None:
        lines = sentences(40, seed=10)

        def repeats(translations: list[Translation]) -> int:
            words = [each.text.split() for each in translations]
            return sum(a == b for line in words for a, b in pairwise(line))

        plain = translator.translate(lines, deduplicate=False)
        fewer = translator.translate(lines, deduplicate=True)
        assert repeats(plain) > 0
        assert repeats(fewer) == 0
        assert [(one.logprob, one.score) for one in fewer] == [
            (one.logprob, one.score) for one in plain
        ]

    def test_words_are_said_once_where_strands_meet(self, translator: Translator) -> None:
        """By default; but not if the line repeats itself, or if the text gets too short."""
        lines = [line for line in sentences(60, seed=10) if not repeats_words(line)]
        order = translator.description.order
        plain = translator.translate(lines, deduplicate=False)
        kept = [
            without_repeated_words(each.tokens, each.pieces, order.seams(len(each.tokens)))
            for each in plain
        ]
        found = translator.translate(lines)
        for before, after, indices in zip(plain, found, kept, strict=True):
            assert list(after.tokens) == [before.tokens[index] for index in indices]
            assert sorted({*indices, *after.dropped}) == list(range(len(before.tokens)))
        mended = [
            (line, each) for line, each, now in zip(lines, plain, found, strict=True) if now.dropped
        ]
        assert mended  # else this says nothing
        for line, whole in mended[:5]:
            as_long = translator.translate([line], min_length=len(whole.tokens))[0]
            assert len(as_long.tokens) >= len(whole.tokens)
        twice = [f"{line} {line.split()[-1]}" for line, _ in mended]
        assert [each.tokens for each in translator.translate(twice)] == [
            each.tokens for each in translator.translate(twice, deduplicate=False)
        ]

    def test_alternatives_that_differ_in_their_repeats_are_one(
        self, translator: Translator
    ) -> None:
        lines = sentences(40, seed=10)
        fewer = 0
        for plain, kept in zip(
            translator.translate(lines, n_best=4, deduplicate=False),
            translator.translate(lines, n_best=4, deduplicate=True),
            strict=True,
        ):
            tokens = [each.tokens for each in kept.hypotheses]
            assert len(set(tokens)) == len(tokens)
            # Each is the first, hence the best, of those that became the same.
            scores = [each.score for each in plain.hypotheses]
            assert kept.score == scores[0]
            assert {each.score for each in kept.next_best} <= set(scores[1:])
            fewer += len(scores) - len(tokens)
        assert fewer > 0  # else this says nothing

    def test_the_end_of_an_over_long_line_is_cut_off(self, translator: Translator) -> None:
        line = "ba bo da du " * 50
        vocabulary = translator.vocabularies.source
        (ids,) = vocabulary.encode([line])
        whole_lines = TranslationOptions(split_sentences=False)
        (whole,) = translator.translate([line], whole_lines)
        (cut,) = translator.translate([line], whole_lines, max_source_length=8)
        (start,) = translator.translate(vocabulary.decode([ids[:8]]))
        assert (whole.truncated, cut.truncated, start.truncated) == (False, True, False)
        same([cut], [start])
        for limit in (len(ids), len(ids) - 1):
            (found,) = translator.translate([line], whole_lines, max_source_length=limit)
            assert found.truncated == (limit < len(ids))
        # By default nothing is lost: it is cut at clauses or words
        (parts,) = translator.translate([line], max_source_length=8)
        assert (parts.truncated, parts.source_tokens) == (False, tuple(ids))

    @pytest.mark.parametrize("task", ["translation", "summarization"])
    def test_a_line_of_several_sentences(self, task: str) -> None:
        """As the command decides: translated one by one, but a summary is of all of them."""
        with Translator.load(tiny_model(), threads=2) as translator:
            translator.description = replace(translator.description, task=task)
            parts = ["Ba bo da.", "Du ga!", "Ki la?"]
            line = " ".join(parts)
            split = translator.translate(line, split_sentences=True)
            whole = translator.translate(line, split_sentences=False)
            assert split.text == " ".join(each.text for each in translator.translate(parts))
            assert (split.sentences, whole.sentences) == (3, 1)
            expected = split if task == "translation" else whole
            same([translator.translate(line)], [expected])
            same(list(translator.stream([line])), [expected])
            same(translator.translate_batch([line]), [expected])
            same([translator.submit(line).result()], [expected])
            same([asyncio.run(translator.translate_async(line))], [expected])

    def test_characters_that_become_many_tokens_are_counted(self, translator: Translator) -> None:
        """NFKC makes 18 letters of one character of three bytes, and they become 33 bytes."""
        line = "\ufdfa " * 8
        (tokens,) = translator.vocabularies.source.encode([line])
        assert len(tokens) > 100 > len(line.encode())  # else this says nothing
        translation = translator.translate(
            line, split_sentences=True, max_source_length=100, max_length=4
        )
        assert not translation.truncated
        assert translation.sentences > 1

    def test_one_text_gives_one_translation(self, translator: Translator) -> None:
        (expected,) = translator.translate(["ba bo"])
        same([translator.translate("ba bo")], [expected])
        assert translator.translate("") == EMPTY

    def test_an_iterator_is_taken(self, translator: Translator, lines: list[str]) -> None:
        same(translator.translate(iter(lines[:9])), translator.translate(lines[:9]))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ([None], "but number 1 of them is NoneType"),
            (["ba", 5], "but number 2 of them is int"),
            ([b"ba"], "but number 1 of them is bytes"),
            (b"ba", "not bytes"),
            ({"ba": 1}, "not dict"),
            ({"ba"}, "not set"),
            (None, "not NoneType"),
            (5, "not int"),
        ],
    )
    def test_what_is_no_text(self, translator: Translator, text: Any, message: str) -> None:
        with pytest.raises(TypeError, match=f"^expected a text .str. or an iterable.*{message}$"):
            translator.translate(text)
        if text != [None]:  # which says that input pauses
            with pytest.raises(TypeError, match=f"^expected an iterable of texts .*{message}$"):
                list(translator.stream(text))
        with pytest.raises(TypeError, match=r"^expected a text \(str\), not "):
            translator.submit(text)

    @pytest.mark.parametrize("text", [None, 5, b"ba", ["ba"], {"ba": 1}])
    def test_what_cannot_be_scored_or_filled(self, translator: Translator, text: Any) -> None:
        kind = type(text).__name__
        if text != ["ba"]:
            with pytest.raises(TypeError, match=f"^expected an iterable of sources.*, not {kind}$"):
                translator.score(text, ["ba"])
            with pytest.raises(TypeError, match=f"^expected an iterable of targets.*, not {kind}$"):
                translator.score(["ba"], text)
        for what in ("sources", "targets"):
            pair: dict[str, Any] = {"sources": ["ba", "bo"], "targets": ["ba", "bo"]}
            with pytest.raises(TypeError, match=f"of {what}.*but number 2 of them is {kind}$"):
                translator.score(**{**pair, what: ["ba", text]})
        with pytest.raises(
            TypeError, match=rf"^expected a text \(str\) as the source, not {kind}$"
        ):
            translator.fill(text)
        for what in ("prefix", "suffix"):
            with pytest.raises(TypeError, match=f"or tokens as the {what}, not {kind}$"):
                translator.fill("ba", **{what: text})
        with pytest.raises(TypeError, match=f"as the source, not {kind}$"):
            translator.alternatives(text, "ba", "ba")
        with pytest.raises(TypeError, match=f"as the translation, not {kind}$"):
            translator.alternatives("ba", text, "ba")

    def test_iterators_are_scored(self, translator: Translator) -> None:
        expected = translator.score(["ba", "bo"], ["da", "du"])
        assert translator.score(iter(["ba", "bo"]), iter(["da", "du"])) == expected

    def test_a_stream_is_not_one_text(self, translator: Translator) -> None:
        with pytest.raises(TypeError, match=r"such as \[text\], not str"):
            translator.stream("ba bo")

    def test_the_source_is_on_the_result(self, translator: Translator, lines: list[str]) -> None:
        vocabulary = translator.vocabularies.source
        for line, each in zip(lines, translator.translate(lines), strict=True):
            if each is not EMPTY:
                assert [list(each.source_tokens)] == vocabulary.encode([line])
                assert list(each.source_pieces) == vocabulary.pieces(each.source_tokens)

    def test_options_are_nothing_else(self, translator: Translator) -> None:
        for options in (4, {"beam": 1}):
            with pytest.raises(TypeError, match="expected TranslationOptions or its fields"):
                translator.translate("ba", options)  # type: ignore[call-overload]
        for draft in (5, b"ba", ["ba"]):
            with pytest.raises(TypeError, match="as the draft"):
                translator.translate("ba", draft=draft, beam=1)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "pair", ["ba", ("ba",), ("ba", "bo", "da"), ("ba", None), (1, "bo"), None]
    )
    def test_scores_are_of_pairs(self, translator: Translator, pair: Any) -> None:
        with pytest.raises(TypeError, match="expected"):
            list(translator.stream_scores([("ba", "bo"), pair]))

    def test_options_are_an_object_or_keywords_or_both(self, translator: Translator) -> None:
        lines = sentences(5, seed=8)
        options = TranslationOptions(beam=2, max_length=3)
        expected = translator.translate(lines, beam=2, max_length=3)
        same(translator.translate(lines, options), expected)
        same(translator.translate(lines, replace(options, beam=1), beam=2), expected)
        same(list(translator.stream(lines, options)), expected)
        same(list(translator.stream(lines, beam=2, max_length=3)), expected)
        with pytest.raises(TypeError, match=r"unknown translation option 'beams'.*beam\?"):
            translator.translate(lines, beams=2)  # type: ignore[call-overload]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (dict(beam=0), "beam"),
            (dict(n_best=5), "n_best"),
            (dict(max_length=0), "max_length"),
            (dict(min_length=5, max_length=4), "min_length"),
            (dict(length_penalty=-1.0), "length_penalty"),
            (dict(batch_tokens=0), "batch_tokens"),
            (dict(max_source_length=0), "max_source_length"),
            (dict(max_source_length=2.5), "max_source_length .* not 2.5"),
            (dict(batch_tokens=True), "batch_tokens .* not True"),
            (dict(min_length="3"), "min_length .* not '3'"),
            (dict(deduplicate="no"), "deduplicate must be True, False or None, not 'no'"),
            (dict(deduplicate=0), "deduplicate must be True, False or None, not 0"),
            (dict(split_sentences="false"), "split_sentences must be .* not 'false'"),
        ],
    )
    def test_bad_options(
        self, translator: Translator, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(UsageError, match=message):
            translator.translate(["ba"], **options)

    @pytest.mark.parametrize("engine", ["onnx", "torch"])
    def test_numbers_may_be_those_of_numpy(self, engine: Literal["onnx", "torch"]) -> None:
        translator = Translator.load(tiny_model(), engine=engine, threads=1)
        options: dict[str, Any] = dict(
            beam=3, n_best=2, min_length=2, max_length=9, max_source_length=8, batch_tokens=16
        )
        of_numpy: dict[str, Any] = {name: np.int64(value) for name, value in options.items()}
        lines = sentences(5, seed=16)
        same(translator.translate(lines, **of_numpy), translator.translate(lines, **options))

    def test_too_little_memory_is_told_with_what_to_lower(
        self, translator: Translator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = Translator.load(tiny_model(), threads=1)._model.generator.engine
        monkeypatch.setattr(translator, "_model", with_engine(translator, engine))
        monkeypatch.setattr(engine, "encode", Mock(side_effect=MemoryError))
        with pytest.raises(BothendsError) as caught:
            translator.translate(["ba bo", "ba"], max_source_length=1, split_sentences=False)
        assert str(caught.value) == (
            "not enough memory for a batch of 2 tokens; "
            "lower --batch-tokens, --beam or --max-source-length"
        )
        with pytest.raises(
            BothendsError, match=r"batch of 3 tokens; lower --batch-tokens or --max"
        ):
            translator.score(["ba"], ["ba ba"])


class TestBackground:
    def test_submitted_texts(self, translator: Translator) -> None:
        lines = [*sentences(10, seed=17), "", " "]
        futures = [translator.submit(line, beam=2) for line in lines]
        same([future.result() for future in futures], translator.translate(lines, beam=2))

    def test_errors_arrive_with_the_result(
        self, translator: Translator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(translator, "_model", with_engine(translator, None))
        with pytest.raises(AttributeError):
            translator.submit("ba").result()

    def test_async(self, translator: Translator) -> None:
        lines = sentences(6, seed=18)

        async def both() -> tuple[Translation, list[Translation]]:
            return await asyncio.gather(
                translator.translate_async(lines[0], beam=2),
                translator.translate_async(iter(lines), beam=2),
            )

        one, several = asyncio.run(both())
        expected = translator.translate(lines, beam=2)
        same([one], expected[:1])
        same(several, expected)

    def test_a_translator_that_is_closed_while_it_translates(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        translate = TextModel.translate

        def slowly(*arguments: Any) -> list[Translation]:
            time.sleep(0.01)
            return translate(*arguments)

        monkeypatch.setattr(TextModel, "translate", slowly)
        with Translator.load(tiny_model(), threads=1) as closing:
            # Each line is a batch, and the first, which is the longest, is translated first.
            stream = closing.stream(["ba " * 30, *sentences(60)], batch_tokens=1)
            next(stream)
            closing.close()
            with pytest.raises(UsageError, match="the translator is closed"):
                list(stream)

    def test_a_closed_translator(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Translator.load(tiny_model(), threads=1) as translator:
            release = threading.Event()
            model = translator._model
            waiting = Mock(side_effect=lambda *_: release.wait(60))
            monkeypatch.setattr(translator, "_model", replace(model, context=waiting))
            running, queued = translator.submit("ba"), translator.submit("bo")
            while not running.running():
                time.sleep(0.001)
            threading.Timer(0.05, release.set).start()
            translator.close()
            with pytest.raises(CancelledError):
                queued.result()
            running.exception()  # ended, one way or the other
        for call in (
            translator.translate,
            translator.submit,
            translator.fill,
            lambda text: translator.stream([text]),
            lambda text: translator.translate_batch([text]),
            lambda text: translator.alternatives(text, text, (0, 2)),
            lambda text: translator.score([text], [text]),
        ):
            with pytest.raises(UsageError, match="the translator is closed"):
                call("ba")


class TestStream:
    def test_as_translate(
        self, translator: Translator, lines: list[str], one_by_one: list[Translation]
    ) -> None:
        same(list(translator.stream(lines)), one_by_one)
        assert list(translator.stream([])) == []

    def test_reads_on_only_as_its_results_are_taken(self, translator: Translator) -> None:
        read = 0

        def endless() -> Iterator[str]:
            nonlocal read
            while True:
                read += 1
                yield "ba"

        stream = translator.stream(endless(), TranslationOptions(beam=1, max_length=1))
        next(stream)
        assert read <= 160  # two windows, of 32 and of 128
        for _ in range(400):
            next(stream)
        assert read <= 32 + 128 + 512 + 2048
        stream.close()

    def test_a_pause_in_the_input_does_not_hold_up_results(self, translator: Translator) -> None:
        taken: list[Translation] = []

        def slow() -> Iterator[str | None]:
            for line in ("ba", "bo"):
                before = len(taken)
                yield line
                yield None
                assert len(taken) == before + 1

        for translation in translator.stream(slow()):
            taken.append(translation)
        assert len(taken) == 2


class TestScore:
    @pytest.mark.parametrize("order", ["1x1", "2x1", "2x2", "4x1"])
    def test_the_logprob_of_a_translation_is_its_forced_score(self, order: str) -> None:
        """To 1e-4: float32 sums of some dozen logprobs, in products of another shape."""
        translator = Translator.load(tiny_model(order), threads=2)
        lines = [*sentences(20, seed=11), "ba bo " * 30]
        translations = translator.translate(lines, n_best=2, deduplicate=False)
        pairs = [
            (line, each)
            for line, best in zip(lines, translations, strict=True)
            for each in best.hypotheses
            if each.finished
        ]
        assert len(pairs) > 20
        scores = translator.score(
            [line for line, _ in pairs], [translation.tokens for _, translation in pairs]
        )
        assert [score.logprob for score in scores] == pytest.approx(
            [translation.logprob for _, translation in pairs], abs=1e-4
        )

    def test_text_is_scored_as_the_vocabulary_cuts_it(self, translator: Translator) -> None:
        sources, targets = sentences(30, seed=12), sentences(30, seed=13)
        tokens = translator.vocabularies.target.encode(targets)
        scores = translator.score(sources, targets, batch_tokens=50)
        assert [s.length for s in scores] == [len(target) for target in tokens]
        special = translator.description.model.special
        for source, target, score in zip(sources, tokens, scores, strict=True):
            ids = [*translator.vocabularies.source.encode([source])[0], special.end]
            (expected,) = force_scores(
                translator._model.generator.engine,
                translator.description.order,
                special,
                np.array([ids]),
                [target],
            )
            assert score.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-5)
            assert score.end_logprob == pytest.approx(expected.end_logprob, abs=1e-5)

    def test_empty_lines_have_a_score_too(self, translator: Translator) -> None:
        nothing, something, of_nothing = translator.score(["", "", "ba"], ["", "ba", ""])
        assert (nothing.length, something.length, of_nothing.length) == (0, 1, 0)
        assert max(s.logprob for s in (nothing, something, of_nothing)) < 0
        assert translator.score([], []) == []

    @pytest.mark.parametrize("pair", [("ba", "bo"), (["ba"], "b"), ("b", ["bo"])])
    def test_one_line_is_not_a_list(self, translator: Translator, pair: Any) -> None:
        with pytest.raises(TypeError, match=r"score\(\[source\], \[target\]\)"):
            translator.score(*pair)

    @pytest.mark.parametrize("batch_tokens", [0, -3, 2.5])
    def test_a_batch_has_some_tokens(self, translator: Translator, batch_tokens: Any) -> None:
        with pytest.raises(UsageError, match="batch_tokens must be a whole number from 1 on"):
            translator.score(["ba"], ["bo"], batch_tokens=batch_tokens)
        with pytest.raises(UsageError, match="batch_tokens must be a whole number from 1 on"):
            translator.stream_scores([("ba", "bo")], batch_tokens=batch_tokens)

    def test_pairs_are_pairs(self, translator: Translator) -> None:
        with pytest.raises(UsageError, match="2 sources, but 1 targets"):
            translator.score(["ba", "bo"], ["ba"])

    def test_what_cannot_be_scored(self, translator: Translator) -> None:
        with pytest.raises(BothendsError, match="pair 2: 9 tokens, but at most 8 are scored"):
            translator.score(["ba", "ba"], ["ba " * 8, "ba " * 9], max_length=8)
        with pytest.raises(BothendsError, match="pair 1: 9 tokens"):
            translator.score(["ba " * 9], ["ba"], max_length=8)
        with pytest.raises(UsageError, match="pair 1: a token is outside"):
            translator.score(["ba"], [[4, 100_000]])

    def test_a_stream_of_pairs(self, translator: Translator) -> None:
        pairs = list(zip(sentences(200, seed=14), sentences(200, seed=15), strict=True))
        scores = [score.logprob for score in translator.stream_scores(iter(pairs))]
        expected = translator.score(*zip(*pairs, strict=True))
        assert scores == pytest.approx([each.logprob for each in expected], abs=1e-4)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other_vocabulary(directory: Path) -> None:
    options = VocabularyOptions(size=300, exact=False)
    train_vocabulary(["ba bo da"], directory / VOCABULARY, options)


class TestLoad:
    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (shutil.rmtree, "no such model directory"),
            (lambda d: (d / CONFIG).unlink(), f"{CONFIG} is missing"),
            (lambda d: truncate(d / CONFIG), "config.json: damaged"),
            (lambda d: (d / VOCABULARY).unlink(), "no vocabulary"),
            (lambda d: truncate(d / VOCABULARY), "damaged, or not a SentencePiece model"),
            (other_vocabulary, "the vocabulary of another model"),
            (lambda d: (d / ENCODER).unlink(), f"no {ENCODER}; .*`bothends export .*`"),
            (
                lambda d: [(d / name).unlink() for name in (DECODER, WEIGHTS)],
                f"no {DECODER}; the model is not complete",
            ),
            (lambda d: truncate(d / DECODER), f"{DECODER}: damaged"),
        ],
    )
    def test_a_damaged_model(
        self, tmp_path: Path, damage: Callable[[Path], object], message: str
    ) -> None:
        directory = tmp_path / "model"
        shutil.copytree(tiny_model(), directory)
        (directory / DIGESTS).unlink()  # as of an older bothends
        damage(directory)
        with pytest.raises(BothendsError, match=message) as caught:
            Translator.load(directory)
        assert str(directory) in str(caught.value)

    def test_another_precision(self) -> None:
        assert Translator.load(tiny_model(), precision="float32").threads >= 1
        with pytest.raises(BothendsError, match=r"export .* --precision int8"):
            Translator.load(tiny_model(), precision="int8")
        with pytest.raises(UsageError, match="torch engine computes in float32"):
            Translator.load(tiny_model(), precision="int8", engine="torch")

    def test_bad_arguments(self) -> None:
        for threads in (0, "2", 1.5):
            with pytest.raises(UsageError, match=f"threads must be .*, not {threads!r}"):
                Translator.load(tiny_model(), threads=threads)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="shortlist must be True or False, not 'no'"):
            Translator.load(tiny_model(), shortlist="no")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="unknown engine 'onyx'; did you mean onnx"):
            Translator.load(tiny_model(), engine="onyx")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="unknown precision 'int4'; did you mean int8"):
            Translator.load(tiny_model(), precision="int4")  # type: ignore[arg-type]

    def test_the_model_in_the_box(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(bothends.model.bundled, "BUNDLED", tmp_path)
        with pytest.raises(BothendsError, match=r"no bundled model.*--model DIR"):
            Translator.load()
        shutil.copytree(tiny_model("2x1"), tmp_path / bothends.model.bundled.DEFAULT_MODEL)
        shutil.copytree(tiny_model("1x1"), tmp_path / "other")
        assert str(Translator.load().description.order) == "2x1"
        assert str(Translator.load("other").description.order) == "1x1"
        with pytest.raises(BothendsError, match="another: no such model directory"):
            Translator.load("another")
        # a directory of the user's own comes first
        shutil.copytree(tiny_model("2x1"), tmp_path / "here" / "other")
        monkeypatch.chdir(tmp_path / "here")
        assert str(Translator.load("other").description.order) == "2x1"

    def test_a_directory_may_be_a_string(self) -> None:
        assert Translator.load(str(tiny_model())).translate([""])[0].text == ""


def test_the_configuration_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counting(directory: Path) -> Any:
        read.append(directory)
        return read_description(directory)

    for module in ("translating.loading", "engines.onnx.engine", "engines.native.engine"):
        monkeypatch.setattr(f"bothends.{module}.read_description", counting)
    Translator.load(tiny_model())
    assert len(read) == 1


def test_translating_imports_no_torch() -> None:
    program = (
        "import sys; from bothends import Translator;"
        f"t = Translator.load({str(tiny_model())!r});"
        "t.translate(['ba bo']); t.score(['ba'], ['bo']);"
        "heavy = {'torch', 'transformers', 'matplotlib', 'onnx', 'safetensors', 'rich'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
