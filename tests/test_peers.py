"""The comparison is fair: other runtimes, given our weights, compute what we compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothends.engines.export import write_graphs
from bothends.engines.onnx.engine import OnnxEngine
from bothends.engines.protocol import pad_sources
from bothends.errors import BothendsError, UsageError
from bothends.evaluation.bench import peers
from bothends.evaluation.bench.peer_ctranslate2 import LIMITS, CTranslate2, convert, hold_to
from bothends.evaluation.bench.peer_transformers import Transformers
from bothends.evaluation.bench.peers import PeerSource, choose_peers, make_peers
from bothends.evaluation.bench.synthetic import (
    never_ending,
    random_shortlist,
    random_sources,
    random_weights,
)
from bothends.evaluation.bench.systems import Bothends, Label, Request, Threads
from bothends.model.config import ModelConfig, preset
from bothends.model.directory import Description, write_description
from bothends.model.weights import Weights
from bothends.order import GenerationOrder, IntArray
from bothends.search.beam import beam_search
from bothends.search.options import SearchOptions
from bothends.search.scoring import force_scores

ORDER = GenerationOrder()
LABEL = Label("test", "test", "1x1", "test", "float32")

#: Every setting of a model that a conversion has to carry over, in a few shapes.
SHAPES: dict[str, dict[str, Any]] = {
    "post-norm": dict(),
    "post-norm gelu, halves": dict(activation="gelu", sinusoid="halves"),
    "post-norm silu, two vocabularies, bias": dict(
        activation="silu", share_embeddings=False, target_vocabulary_size=70, output_bias=True
    ),
    "pre-norm": dict(norm="pre", encoder_layers=3),
    "pre-norm gelu, own output": dict(norm="pre", activation="gelu", tie_output=False),
    "unscaled embeddings": dict(embedding_scale=False, heads=2),
}
MARIAN_SHAPES = [name for name in SHAPES if "pre-norm" not in name]


def shape(name: str) -> ModelConfig:
    return preset("tiny", vocabulary_size=90, **SHAPES[name])


def lively_weights(config: ModelConfig, seed: int = 0) -> Weights:
    """Random weights whose output varies from token to token and from sentence to sentence.

    Plain random networks repeat one word, which almost any mistake would do as well; attention that
    is six times as sharp and as loud makes them follow their input.
    """
    weights = random_weights(config, ORDER, seed)
    for name in weights:
        if "query" in name or "key_value" in name:
            weights[name] = 6 * weights[name]
        elif "embedding" in name and not config.embedding_scale:
            weights[name] = np.float32(config.width**0.5) * weights[name]
    return weights


def sources_of(config: ModelConfig, sentences: int = 12) -> list[IntArray]:
    """Sentences of 3 to 9 tokens."""
    drawn = random_sources(config, sentences, 9, seed=1)
    return [source[number % 7 :] for number, source in enumerate(drawn)]


def our_engine(config: ModelConfig, weights: Weights, directory: Path) -> OnnxEngine:
    write_description(directory, Description(model=config))
    write_graphs(directory, weights, config, ORDER, "float32")
    return OnnxEngine.load(directory)


def ours(config: ModelConfig, weights: Weights, directory: Path) -> Bothends:
    engine = our_engine(config, weights, directory)
    return Bothends(LABEL, ORDER, config, lambda threads: engine)


def ctranslate2_translator(config: ModelConfig, weights: Weights, directory: Path) -> Any:
    import ctranslate2

    convert(config, weights, "float32", directory / "ct2")
    return ctranslate2.Translator(str(directory / "ct2"), compute_type="float32", intra_threads=1)


def words(source: IntArray) -> list[str]:
    return [str(token) for token in source.tolist()]


@pytest.mark.parametrize("name", SHAPES)
def test_ctranslate2_gives_every_token_our_logprob(name: str, tmp_path: Path) -> None:
    config = shape(name)
    weights = lively_weights(config)
    random = np.random.default_rng(2)
    sources = sources_of(config)
    targets = [random.integers(4, config.target_size, 3 + n % 5).tolist() for n in range(12)]
    translator = ctranslate2_translator(config, weights, tmp_path)
    theirs = translator.score_batch(
        [words(source) for source in sources], [words(np.array(target)) for target in targets]
    )
    batch = pad_sources(sources, config.special.pad)
    engine = our_engine(config, weights, tmp_path)
    scores = force_scores(engine, ORDER, config.special, batch, targets)
    for score, result in zip(scores, theirs, strict=True):
        found = [*score.token_logprobs, score.end_logprob]
        # Sharp attention leaves 6e-4 between two float32 implementations in the worst of the
        # shapes; a weight in the wrong place moves logprobs by whole units.
        np.testing.assert_allclose(found, result.log_probs, atol=2e-3)


@pytest.mark.parametrize("name", SHAPES)
def test_ctranslate2_writes_our_greedy_output(name: str, tmp_path: Path) -> None:
    config = shape(name)
    weights, sources = lively_weights(config), sources_of(config)
    convert(config, weights, "float32", tmp_path / "ct2")
    request = Request(beam=1, min_length=0, max_length=24)
    found = ours(config, weights, tmp_path).translate(sources, request, Threads())
    peer = CTranslate2(LABEL, config.special, tmp_path / "ct2")
    for threads in (Threads(1, 1), Threads(2, 1), Threads(1, 2)):
        theirs = peer.translate(sources, request, threads)
        # At the limit its last token is the one that took the place of the end symbol.
        assert [tokens[:24] for tokens in theirs.tokens] == found.tokens
        assert theirs.steps == found.steps
    assert len({token for tokens in found.tokens for token in tokens}) > 5
    assert len({tuple(tokens) for tokens in found.tokens}) > 5


@pytest.mark.parametrize("beam", [1, 4])
def test_ctranslate2_ends_its_sentences_where_we_do(beam: int, tmp_path: Path) -> None:
    """Without normalisation: with it, CTranslate2 counts the end symbol in the length, and we and
    the paper do not, so that the two rank the same hypotheses in different orders."""
    config = preset("tiny", vocabulary_size=40, norm="pre", tie_output=False, output_bias=True)
    weights = lively_weights(config, seed=1)
    weights["output_bias"][config.special.end] = 2  # most end within the limit, at many lengths
    sources = sources_of(config, 24)
    options = SearchOptions(beam=beam, length_penalty=0, max_length=30)
    engine, batch = our_engine(config, weights, tmp_path), pad_sources(sources, config.special.pad)
    found = [best for best, *_ in beam_search(engine, ORDER, config.special, batch, options)]
    results = ctranslate2_translator(config, weights, tmp_path).translate_batch(
        [words(source) for source in sources],
        beam_size=beam,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=31,
        return_scores=True,
    )
    finished = 0
    for ours, theirs in zip(found, results, strict=True):
        if ours.finished:
            finished += 1
            assert words(np.array(ours.tokens, np.int64)) == theirs.hypotheses[0]
            assert theirs.scores[0] == pytest.approx(ours.logprob, abs=2e-3)
    assert finished > 12
    assert len({len(each.tokens) for each in found}) > 6


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_that_cannot_end_fills_every_slot(
    precision: str, beam: int, tmp_path: Path
) -> None:
    config = shape("post-norm")
    weights = never_ending(random_weights(config, ORDER, 0), config)
    convert(config, weights, precision, tmp_path / "ct2")
    label = Label("test", "test", "1x1", "ctranslate2", precision)
    peer = CTranslate2(label, config.special, tmp_path / "ct2")
    request = Request(beam, min_length=0, max_length=15)
    outcome = peer.translate(sources_of(config), request, Threads())
    assert {len(tokens) for tokens in outcome.tokens} == {16}
    assert set(outcome.steps) == {16}
    found = ours(config, weights, tmp_path).translate(sources_of(config), request, Threads())
    assert {len(tokens) for tokens in found.tokens} == {15}  # the last slot waits for the end
    assert set(found.steps) == {16}


def test_ctranslate2_uses_the_words_of_a_shortlist(tmp_path: Path) -> None:
    """Its vocabulary map is ours; and only where it is asked for."""
    config = shape("post-norm")
    weights = never_ending(random_weights(config, ORDER, 0), config)
    shortlist = random_shortlist(config, 12, 6, 0)
    convert(config, weights, "int8", tmp_path / "ct2", shortlist)
    label = Label("test", "test", "1x1", "ctranslate2", "int8")
    inside = {False: 0, True: 0}
    for listed in inside:
        peer = CTranslate2(replace(label, shortlist=listed), config.special, tmp_path / "ct2")
        for source in sources_of(config):
            (tokens,) = peer.translate([source], Request(1, 0, 15), Threads()).tokens
            # It always allows special tokens.
            special = set(config.special.ids)
            allowed = special | set(shortlist.allowed(source.tolist()).tolist())
            inside[listed] += set(tokens) <= allowed
    assert inside[True] == len(sources_of(config)) > inside[False]


def test_ctranslate2_is_held_to_what_we_are_held_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIMITS:
        monkeypatch.delenv(name, raising=False)
    assert hold_to(None) == hold_to("vnni") == "all"
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "GENERIC")  # what a user says stays
    held = hold_to("avx2")
    assert "CT2_FORCE_CPU_ISA=GENERIC" in held
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in held
    for name in LIMITS:  # which it has set for good
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", MARIAN_SHAPES)
def test_transformers_writes_our_greedy_output(name: str, tmp_path: Path) -> None:
    config = shape(name)
    weights, sources = lively_weights(config), sources_of(config)
    peer = Transformers(LABEL, config, weights)
    for request in (Request(1, 0, 24), Request(1, 12, 12)):
        found = ours(config, weights, tmp_path).translate(sources, request, Threads())
        theirs = peer.translate(sources, request, Threads())
        limit = request.max_length
        assert [tokens[:limit] for tokens in theirs.tokens] == found.tokens
        assert theirs.steps == found.steps


def test_transformers_refuses_what_marian_is_not() -> None:
    config = shape("pre-norm")
    with pytest.raises(BothendsError, match="normalises after each sublayer"):
        Transformers(LABEL, config, random_weights(config, ORDER, 0))


def test_peers_have_each_precision_that_they_know(tmp_path: Path) -> None:
    config = shape("post-norm")
    source = PeerSource("family", "name", config, random_weights(config, ORDER, 0))
    chosen = choose_peers(["ctranslate2", "transformers"])
    labels = [peer.label for peer in make_peers(chosen, source, ["int8", "float32"], tmp_path)]
    assert [(label.engine, label.precision) for label in labels] == [
        ("ctranslate2", "int8"),
        ("ctranslate2", "float32"),
        ("transformers", "float32"),
    ]
    assert {(label.family, label.name, label.order) for label in labels} == {
        ("family", "name", "1x1")
    }


def test_a_missing_peer_is_a_note_unless_it_was_asked_for(monkeypatch: Any) -> None:
    assert choose_peers(None).names == ("ctranslate2",)
    assert choose_peers([]).names == ()
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    chosen = choose_peers(None)
    assert chosen.names == ()
    assert "ctranslate2 is not installed" in chosen.notes[0]
    with pytest.raises(BothendsError, match="--peers transformers: it is not installed"):
        choose_peers(["transformers"])


def test_an_unknown_peer_is_named() -> None:
    with pytest.raises(UsageError, match="unknown peer 'ctranslate'; did you mean ctranslate2"):
        choose_peers(["ctranslate"])
