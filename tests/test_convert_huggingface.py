"""Converted Hugging Face models compute, cut and write what the originals do, family by family."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import foreign_models
from bothends.convert.huggingface import convert_huggingface
from bothends.convert.options import ConvertOptions
from bothends.engines.export import export_model
from bothends.engines.prompt import with_prompt
from bothends.engines.protocol import pad_sources
from bothends.engines.torch import TorchEngine
from bothends.model.directory import read_description
from bothends.model.torch.checkpoint import load_model
from bothends.order import GenerationOrder
from bothends.search.beam import beam_search
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores
from bothends.text.vocabulary import Vocabularies
from bothends.translator import Translator
from conftest import order_tensors
from foreign_models import odd_lines

FAMILIES: dict[str, Callable[[Path], Any]] = {
    "marian": foreign_models.marian,
    "marian-separate": lambda path: foreign_models.marian(path, separate=True),
    "bart": foreign_models.bart,
    "nllb": foreign_models.nllb,
    "m2m": foreign_models.m2m,
    "mbart": foreign_models.mbart,
    "mbart50": lambda path: foreign_models.mbart(path, fifty=True),
    "pegasus": foreign_models.pegasus,
}
#: The language token that decoding is forced to begin with.
FORCED = {"nllb": "deu_Latn", "mbart50": "de_DE"}
LIMIT = 24


@dataclass(frozen=True)
class Pair:
    """An original and what became of it."""

    name: str
    original: Path
    converted: Path
    theirs: Any
    tokenizer: Any

    def sources(self, lines: list[str]) -> Any:
        return self.tokenizer(lines, return_tensors="pt", padding=True)

    def generate(self, lines: list[str], beam: int) -> list[list[int]]:
        """What the original writes: its tokens without those that are no text."""
        batch = self.sources(lines)
        batch.pop("token_type_ids", None)
        options: dict[str, Any] = {}
        if self.name in FORCED:
            options["forced_bos_token_id"] = self.tokenizer.convert_tokens_to_ids(FORCED[self.name])
        if self.name == "m2m":
            options["forced_bos_token_id"] = self.tokenizer.get_lang_id("de")
        if self.name == "mbart":
            options["decoder_start_token_id"] = self.tokenizer.convert_tokens_to_ids("de_DE")
        rows = self.theirs.generate(
            **batch,
            **options,
            num_beams=beam,
            do_sample=False,
            early_stopping=beam > 1,
            length_penalty=0.0 if beam > 1 else None,
            max_new_tokens=LIMIT + 1 + len(self.prompt),
        ).tolist()
        return [self._text(row) for row in rows]

    def _text(self, row: list[int]) -> list[int]:
        row = row[1 + len(self.prompt) :]
        end = self.theirs.config.eos_token_id
        return row[: row.index(end)] if end in row else row[:LIMIT]

    @property
    def prompt(self) -> tuple[int, ...]:
        return read_description(self.converted).model.frame.prompt


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    from transformers import AutoTokenizer, M2M100Tokenizer, MarianTokenizer

    directory = tmp_path_factory.mktemp(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = FAMILIES[request.param](directory / "original").double()
        foreign_models.exact_sinusoids(theirs)
        kind = {"marian": MarianTokenizer, "m2m": M2M100Tokenizer}.get(
            request.param.split("-")[0], AutoTokenizer
        )
        tokenizer = kind.from_pretrained(directory / "original")
    convert_huggingface(directory / "original", ConvertOptions()).write(directory / "converted")
    return Pair(request.param, directory / "original", directory / "converted", theirs, tokenizer)


def plain_lines(count: int) -> list[str]:
    """Lines with some text in them, none of them long."""
    return [line for line in odd_lines(4 * count, seed=9) if line.strip() and len(line) < 50][
        :count
    ]


def test_text_is_cut_and_joined_as_the_original_does(pair: Pair) -> None:
    vocabularies = Vocabularies.load(pair.converted)
    config = read_description(pair.converted).model
    lines = odd_lines(2000)
    expected = pair.tokenizer(lines)["input_ids"]
    found = [config.framed(ids) for ids in vocabularies.source.encode(lines)]
    assert found == expected
    if pair.name.startswith("marian"):
        expected = pair.tokenizer(text_target=lines)["input_ids"]
        end = config.special.end
        assert [[*ids, end] for ids in vocabularies.target.encode(lines)] == expected
    elif pair.name == "m2m":  # whose decoder shows the language
        expected = [ids[1:] for ids in expected]
    texts = [pair.tokenizer.decode(ids, skip_special_tokens=True) for ids in expected]
    # What neither a line of text nor a file that we read may have is not in what we write.
    assert vocabularies.target.decode(expected) == [
        re.sub(r"[\x00-\x08\x7f]", "", " ".join(text.splitlines())) for text in texts
    ]


def test_logits_are_those_of_the_original(pair: Pair) -> None:
    model, description = load_model(pair.converted)
    model = model.double().eval()
    batch = pair.sources(plain_lines(200))
    random = np.random.default_rng(0)
    width = len(description.model.frame.prompt) + 11
    tokens = torch.from_numpy(random.integers(4, 200, (200, width)))
    tokens[:, 0] = description.model.special.start
    with torch.no_grad():
        found = model(batch["input_ids"], tokens, order_tensors(GenerationOrder(), width))
        expected = pair.theirs(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_input_ids=tokens,
        ).logits
    if pair.name.startswith("marian"):  # it never writes padding, and ours cannot
        found[..., description.model.special.pad] = expected[..., description.model.special.pad]
    assert expected.std() > 0.5
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_output_is_that_of_the_original(pair: Pair, beam: int) -> None:
    model, description = load_model(pair.converted)
    engine = with_prompt(TorchEngine(model.double()), description.model, description.order)
    lines = plain_lines(200 if beam == 1 else 600)
    vocabulary = Vocabularies.load(pair.converted).source
    sources = [description.model.framed(ids) for ids in vocabulary.encode(lines)]
    batch = pad_sources(sources, description.model.special.pad)
    options = SearchOptions(beam=beam, length_penalty=0, max_length=LIMIT)
    special = description.model.special
    found = beam_search(engine, description.order, special, batch, options)
    if beam > 1:
        # 200 that end. What is cut at the limit ranks differently: with us a cut costs nothing, and
        # the original counts the token that it cuts at.
        ended = [number for number, best in enumerate(found) if best[0].finished][:200]
        lines, batch = [lines[number] for number in ended], batch[ended]
        found = [found[number] for number in ended]
    assert len(lines) == 200
    expected = pair.generate(lines, beam)
    assert len({tuple(tokens) for tokens in expected}) > 25
    ours = [best[0].tokens for best in found]
    assert ours == expected
    # The returned score is the forced score, behind a prompt as well.
    scores = force_scores(engine, description.order, special, batch[:20], ours[:20])
    for score, best in zip(scores[:20], found[:20], strict=True):
        expected_logprob = score.logprob if best[0].finished else sum(score.token_logprobs)
        assert best[0].logprob == pytest.approx(expected_logprob, abs=1e-6)


def test_the_runtime_writes_the_same_text(pair: Pair, tmp_path: Path) -> None:
    """From text to text, exported, without PyTorch."""
    export_model(pair.converted, "float32", tmp_path / "exported")
    lines = plain_lines(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pair.generate(lines, 1)
    translator = Translator.load(tmp_path / "exported", threads=1)
    found = translator.translate(lines, split_sentences=False, beam=1, max_length=LIMIT)
    assert [list(each.tokens) for each in found] == expected
    decode = translator.vocabularies.target.decode
    assert [each.text for each in found] == decode(expected)
