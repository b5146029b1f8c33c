"""What a run computes: accumulation, mixtures, validation, fine-tuning, and a user's first run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from bothends.cli import run as run_command
from bothends.errors import BothendsError
from bothends.model.directory import read_description
from bothends.model.torch.checkpoint import load_model
from bothends.order import GenerationOrder
from bothends.training.batches import Position, collate
from bothends.training.loop import train
from bothends.training.recipe import Length
from bothends.training.report import time_left
from bothends.training.setup import Setup
from bothends.training.step import Tensors, summed_loss
from command_line import error_line
from corpus_data import make_sentences, write_lines
from training_data import TINY, tiny_corpus, tiny_recipe, write_recipe

NO_DROPOUT = "model.dropout={residual: 0, attention: 0, embedding: 0}"


def records(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [record for record in lines if record["kind"] == kind]


@pytest.mark.parametrize("order", ["1x1", "2x1", "4x1"])
def test_accumulated_gradients_are_those_of_one_large_batch(tmp_path: Path, order: str) -> None:
    recipe = tiny_recipe(tmp_path, NO_DROPOUT, f"order={order}")
    setup = Setup.of(recipe)
    update = next(setup.stream.updates(Position()))
    assert len(update.micro_batches) > 1
    model = setup.new_model(recipe.seed).double()
    special = model.config.special

    def gradients(*batches: list[int]) -> dict[str, torch.Tensor]:
        model.zero_grad()
        for pairs in batches:
            arrays = collate([setup.stream.pairs[i] for i in pairs], model.order, special)
            loss = summed_loss(model, Tensors.of(arrays, special, torch.device("cpu")), 0.1)
            (loss / update.target_tokens).backward()  # type: ignore[no-untyped-call]
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    parts = [batch.pairs.tolist() for batch in update.micro_batches]
    accumulated, together = gradients(*parts), gradients([pair for part in parts for pair in part])
    for name, gradient in together.items():
        # float64: what is left is the order of sums
        torch.testing.assert_close(accumulated[name], gradient, rtol=1e-9, atol=1e-12)


def test_the_first_loss_is_that_of_a_model_that_knows_nothing(tmp_path: Path) -> None:
    train(tiny_recipe(tmp_path, "training.updates=1", "log_every=1", "optimiser.warmup=1000"))
    vocabulary = read_description(tmp_path / "run" / "last").model.vocabulary_size
    (record,) = records(tmp_path / "run", "training")
    # Random logits of unit variance cost half a nat more than a uniform guess.
    assert record["loss"] == pytest.approx(torch.tensor(vocabulary).log().item() + 0.5, abs=0.5)


def test_a_run_learns_and_tells_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ("training.updates=40", "validation.every=20", "validation.metric=chrf")
    train(tiny_recipe(tmp_path, "order=2x1", "validation.beam=2", *overrides))
    run = tmp_path / "run"
    first, *_, last = records(run, "validation")
    assert last["loss"] < first["loss"]
    assert last["perplexity"] == pytest.approx(2.718281828 ** last["loss"], rel=1e-6)
    assert last["signature"].startswith("nrefs:1")
    training = records(run, "training")
    assert training[-1]["loss"] < training[0]["loss"]
    assert [record["update"] for record in training] == list(range(2, 41, 2))
    assert {"learning_rate", "gradient_norm", "tokens_per_second", "epoch"} <= training[0].keys()
    assert (run / "curves.svg").read_text().lstrip().startswith("<?xml")
    said = capsys.readouterr().err
    assert "tokens/s" in said
    assert "left" in said


def test_a_checkpoint_is_a_model_with_its_provenance(tmp_path: Path) -> None:
    outcome = train(tiny_recipe(tmp_path, "order=2x1", "data.source_language=en"))
    model, description = load_model(outcome.checkpoint)
    assert model.order == GenerationOrder.parse("2x1")
    assert description.source_language == "en"
    assert description.lengths is not None
    assert description.lengths.longest_source is not None
    provenance = description.provenance
    assert provenance["recipe"]["order"] == "2x1"
    assert provenance["update"] == 6
    (data,) = provenance["data"].values()
    assert len(data["manifest_sha256"]) == 64
    assert provenance["versions"]["torch"] == torch.__version__


def test_too_long_pairs_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = train(tiny_recipe(tmp_path, "batch.max_source_length=20", "training.updates=1"))
    said = capsys.readouterr().err
    assert "left out as too long" in said
    assert "with more than 20 source tokens" in said
    # The model has not learned from them, so they do not tell what it can read.
    lengths = read_description(outcome.checkpoint).lengths
    assert lengths is not None
    assert lengths.longest_source == 20


def test_time_epochs_and_patience_end_a_run(tmp_path: Path) -> None:
    by_time = tiny_recipe(tmp_path / "time", "training={updates: null, minutes: 0.0001}")
    assert train(by_time).update == 1
    by_epochs = tiny_recipe(tmp_path / "epochs", "training={updates: null, epochs: 2}")
    outcome = train(by_epochs)
    progress = json.loads((outcome.checkpoint / "training.json").read_text())
    assert progress["position"] == {"epoch": 2, "window": 0, "batch": 0}
    stuck = tiny_recipe(
        tmp_path / "patience",
        "training.updates=20",
        "validation={every: 1, metric: exact, patience: 3, beam: 1, sentences: 2}",
    )
    # Nothing is exactly right after four updates: the first validation stays the best.
    assert train(stuck).update == 4


def test_a_mixture_of_corpora(tmp_path: Path) -> None:
    mixed = f"data.prepared=[{tiny_corpus()}, {{path: {tiny_corpus()}, repeat: 2}}]"
    setup = Setup.of(tiny_recipe(tmp_path, mixed))
    assert len(setup.stream.pairs) == 360


def test_fine_tuning_from_another_order_and_with_fewer_layers(tmp_path: Path) -> None:
    teacher = train(tiny_recipe(tmp_path / "teacher", "model.decoder_layers=2"))
    recipe = tiny_recipe(
        tmp_path / "student", "order=2x1", f"init={teacher.checkpoint}", "training.updates=1"
    )
    setup = Setup.of(recipe)
    student, (before, _) = setup.new_model(recipe.seed), load_model(teacher.checkpoint)
    setup.begin_with(teacher.checkpoint, student)
    assert torch.equal(student.source_embedding.weight, before.source_embedding.weight)
    assert len(student.decoder.layers) == 1
    ours, theirs = student.state_dict(), before.state_dict()
    shared = "decoder.layers.0.feed_forward.inner.weight"
    assert torch.equal(ours[shared], theirs[shared])
    assert str(read_description(train(recipe).checkpoint).order) == "2x1"


def test_what_a_run_begins_with_is_said_and_needed_only_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher = train(tiny_recipe(tmp_path / "teacher", "training.updates=1"))
    settings = (f"init={teacher.checkpoint}", "model.feed_forward=12")
    train(tiny_recipe(tmp_path / "student", *settings, "training.updates=1"))
    said = capsys.readouterr().err
    assert f"begins with {teacher.checkpoint}, " in said
    assert "; new: encoder.layers.0.feed_forward.inner.weight, " in said
    shutil.rmtree(tmp_path / "teacher")
    assert train(tiny_recipe(tmp_path / "student", *settings, "training.updates=2")).update == 2


def test_how_validation_searches_is_checked_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match="length_penalty must be 0 or more"):
        train(tiny_recipe(tmp_path, "validation={metric: chrf, length_penalty: -1}"))
    assert not (tmp_path / "run").exists()


def test_frozen_parts_stay_as_they_are_also_after_an_interruption(tmp_path: Path) -> None:
    teacher = train(tiny_recipe(tmp_path / "teacher", "training.updates=2"))
    begun, _ = load_model(teacher.checkpoint)
    settings = (f"init={teacher.checkpoint}", "freeze=[embeddings, encoder]", "order=2x1")
    for updates in (2, 6):  # the second goes on where the first ended
        end = train(tiny_recipe(tmp_path / "student", *settings, f"training.updates={updates}"))
    trained, _ = load_model(end.checkpoint)
    before, after = begun.state_dict(), trained.state_dict()
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert changed == {name for name in after if name.startswith("decoder.")}


def test_nothing_is_frozen_at_random(tmp_path: Path) -> None:
    with pytest.raises(BothendsError, match=r"freeze keeps the weights .* set init"):
        tiny_recipe(tmp_path, "freeze=encoder")


#: Names for corpora that the tests below make when they run.
CORPORA: dict[str, dict[str, Any]] = {
    "PLAIN": {},
    "UNJUDGED": {"valid": False},
    "OTHER": {"seed": 7},
    "SEPARATE": {"separate": True},
}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("data.prepared=nowhere", "nowhere: no such prepared corpus"),
        ("data.prepared=UNJUDGED", "no split 'valid'"),
        ("data.prepared=[PLAIN, OTHER]", "its vocabulary differs from"),
        ("data.prepared=SEPARATE", "needs model.share_embeddings: false"),
        ("init=nowhere", "nowhere"),
        ("batch.max_target_length=1", "no pairs to train on"),
        ("device=cuda", "PyTorch sees no GPU"),
        ("tensorboard=true", "pip install tensorboard"),
        ("run=/proc/nothing/run", "cannot be made"),
        ("optimiser.learning_rate=1e9", "not finite at update"),
        (
            "validation={metric: bleu, tokenizer: none-such}",
            "sacreBLEU has no tokenizer 'none-such'",
        ),
    ],
)
def test_what_is_wrong_with_a_run_is_said_in_one_line(
    tmp_path: Path, override: str, expected: str
) -> None:
    for name, options in CORPORA.items():
        if name in override:
            override = override.replace(name, str(tiny_corpus(**options)))
    with pytest.raises(BothendsError) as caught:
        train(tiny_recipe(tmp_path, override))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_separate_vocabularies(tmp_path: Path) -> None:
    corpus = f"data.prepared={tiny_corpus(separate=True)}"
    outcome = train(tiny_recipe(tmp_path, corpus, "model.share_embeddings=false"))
    assert {"sentencepiece.source.model", "sentencepiece.target.model"} <= {
        path.name for path in outcome.checkpoint.iterdir()
    }


@pytest.mark.parametrize("metric", ["bleu", "chrf", "rouge", "exact"])
def test_every_metric_can_judge(tmp_path: Path, metric: str) -> None:
    settings = f"validation={{metric: {metric}, beam: 1, sentences: 2}}"
    outcome = train(tiny_recipe(tmp_path, settings, "training.updates=1"))
    assert outcome.best_update == 1
    (record,) = records(tmp_path / "run", "validation")
    assert 0 <= record[metric] < 50
    assert record["signature"]


def test_time_left() -> None:
    assert time_left(Length(updates=100), 25, 0, 60.0) == "0:03:00"
    assert time_left(Length(updates=100, minutes=2.0), 25, 0, 60.0) == "0:01:00"
    assert time_left(Length(updates=None, epochs=4), 3, 0, 60.0) == "?"


def test_from_two_text_files_to_a_translation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 80), ("valid", 6)):
        lines = make_sentences(count, words=30)
        write_lines(Path(f"{name}.en"), lines)
        write_lines(Path(f"{name}.de"), [line.upper() for line in lines])
    prepared = "prepare --source train.en --target train.de --valid-source valid.en "
    prepared += "--valid-target valid.de --output corpus --vocabulary-size 350"
    assert run_command(prepared.split()) == 0
    write_recipe(Path("mine.yaml"), {**TINY, "data": {"prepared": "corpus"}, "order": "2x1"})
    assert run_command(["train", "mine.yaml", "training.updates=3"]) == 0
    model = "runs/mine-2x1/last"
    capsys.readouterr()
    assert run_command(["translate", "--engine", "torch", "--model", model, "valid.en"]) == 0
    assert len(capsys.readouterr().out.split("\n")) == 7
    status, message = error_line(["train", "mine.yaml", "ordr=2x2"], capsys)
    assert (status, message) == (2, "override: unknown key 'ordr'; did you mean order?")


@pytest.mark.parametrize(
    "message",
    [
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)",
        "CUDA out of memory. Tried to allocate 20.00 MiB.",
    ],
)
def test_too_little_memory_is_told_as_such(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr("bothends.training.setup.Transformer", fail)
    with pytest.raises(MemoryError, match=r"lower batch\.micro_tokens"):
        train(tiny_recipe(tmp_path))
