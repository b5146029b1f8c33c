"""Model directories: a round trip, every error line, and weights carried over to another shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bothends.errors import BothendsError
from bothends.model.directory import CONFIG, WEIGHTS, Description
from bothends.model.torch.checkpoint import (
    evenly_spaced,
    load_model,
    save_model,
    transfer_weights,
)
from bothends.model.torch.transformer import Transformer
from bothends.order import GenerationOrder
from bothends.storage.digests import DIGESTS
from conftest import ALL_ORDERS, MakeModel, tiny_config


def describe(model: Transformer) -> Description:
    return Description(
        model=model.config,
        order=model.order,
        source_language="en",
        provenance={"data": ["made up", 3], "größe": None},
    )


def assert_same_weights(one: Transformer, other: Transformer) -> None:
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        assert tensor.dtype == theirs[name].dtype
        assert torch.equal(tensor, theirs[name]), name


@pytest.fixture
def saved(tmp_path: Path, make_model: MakeModel) -> Path:
    """A directory with a good 4x1 model in it."""
    model = make_model("4x1")
    save_model(tmp_path / "model", model, describe(model))
    return tmp_path / "model"


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
def test_round_trip_of_orders(order: GenerationOrder, tmp_path: Path) -> None:
    model = Transformer(tiny_config(), order)
    save_model(tmp_path, model, describe(model))
    loaded, description = load_model(tmp_path)
    assert description == describe(model)
    assert (loaded.order, loaded.config) == (order, model.config)
    assert_same_weights(loaded, model)
    assert all(parameter.requires_grad for parameter in loaded.parameters())


@pytest.mark.parametrize(
    "changes",
    [
        dict(norm="pre"),
        dict(tie_output=False, output_bias=True),
        dict(share_embeddings=False, target_vocabulary_size=29),
    ],
)
@pytest.mark.parametrize("precision", [torch.float64, torch.float16])
def test_round_trip_of_layouts_keeps_the_precision(
    changes: dict[str, Any], precision: torch.dtype, tmp_path: Path, make_model: MakeModel
) -> None:
    model = make_model("2x1", **changes).to(precision)
    save_model(tmp_path, model, describe(model))
    assert_same_weights(load_model(tmp_path)[0], model)


def test_saving_replaces_and_leaves_nothing_else(saved: Path, make_model: MakeModel) -> None:
    model = make_model("2x1", decoder_layers=1)
    save_model(saved, model, describe(model))
    assert_same_weights(load_model(saved)[0], model)
    assert sorted(path.name for path in saved.iterdir()) == sorted([CONFIG, DIGESTS, WEIGHTS])


def test_a_save_that_fails_leaves_the_old_model(
    saved: Path, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (saved / "model.safetensors").read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    model = make_model("4x1")
    with pytest.raises(BothendsError, match=r"model\.safetensors: cannot be written \(No space"):
        save_model(saved, model, describe(model))
    assert (saved / "model.safetensors").read_bytes() == before
    assert sorted(path.name for path in saved.iterdir()) == sorted([CONFIG, DIGESTS, WEIGHTS])


def edit_config(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / "config.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return damage


def edit_weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        weights = load_file(directory / "model.safetensors")
        change(weights)
        save_file(weights, directory / "model.safetensors")

    return damage


def cut_weights(size: int) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / "model.safetensors"
        path.write_bytes(path.read_bytes()[:size])

    return damage


INNER = "decoder.layers.1.feed_forward.inner.weight"


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        pytest.param(
            lambda d: d.rename(d.with_name("elsewhere")), "{}: no such model directory", id="absent"
        ),
        pytest.param(
            lambda d: (d / "config.json").unlink(),
            "{}: not a model directory, config.json is missing",
            id="no-config",
        ),
        pytest.param(
            lambda d: (d / "config.json").write_text("{"),
            "{}/config.json: damaged, not a model's configuration (",
            id="half-a-config",
        ),
        pytest.param(
            lambda d: (d / "config.json").write_bytes(b"\xff\xfe\x00"),
            "{}/config.json: damaged, not a model's configuration (byte 2 is not ",
            id="binary-config",
        ),
        pytest.param(
            lambda d: (d / "config.json").write_text("[]"),
            "{}/config.json: damaged, not a model's configuration (",
            id="a-list",
        ),
        pytest.param(
            edit_config(lambda c: c.update(format_version=2)),
            "{}/config.json: format version 2, but this bothends reads up to 1; "
            "a newer bothends is needed",
            id="newer",
        ),
        pytest.param(
            edit_config(lambda c: c["model"].update(width=17)),
            "{}/config.json: model: width 17 is not a multiple of heads 2",
            id="bad-shape",
        ),
        pytest.param(
            edit_config(lambda c: c.update(order="3x1")),
            "{}/config.json: order: bad generation order 3x1: directions must be 1 or even",
            id="bad-order",
        ),
        pytest.param(
            lambda d: (d / "model.safetensors").unlink(),
            "{}: no weights, model.safetensors is missing",
            id="no-weights",
        ),
        pytest.param(
            cut_weights(0),
            "{}/model.safetensors: damaged, not a file of weights (",
            id="empty-weights",
        ),
        pytest.param(
            cut_weights(5),
            "{}/model.safetensors: damaged, not a file of weights (",
            id="no-header",
        ),
        pytest.param(
            cut_weights(10_000),
            "{}/model.safetensors: damaged, not a file of weights (",
            id="half-the-weights",
        ),
        pytest.param(
            lambda d: (d / "model.safetensors").write_bytes(b"PK\x03\x04" * 100),
            "{}/model.safetensors: damaged, not a file of weights (",
            id="a-pickle",
        ),
        pytest.param(
            edit_weights(lambda w: w.pop(INNER)),
            f"{{}}/model.safetensors: tensor {INNER} is missing",
            id="a-tensor-missing",
        ),
        pytest.param(
            edit_config(lambda c: c["model"].update(norm="pre")),
            "{}/model.safetensors: tensor encoder.norm.weight is missing (4 such tensors)",
            id="tensors-missing",
        ),
        pytest.param(
            edit_config(lambda c: c.update(order="2x1")),
            "{}/model.safetensors: tensor direction_embedding.weight is not one that config.json "
            "asks for",
            id="a-tensor-too-many",
        ),
        pytest.param(
            edit_config(lambda c: c["model"].update(vocabulary_size=40)),
            "{}/model.safetensors: tensor source_embedding.weight has shape (23, 16), "
            "but config.json asks for (40, 16)",
            id="wrong-shape",
        ),
        pytest.param(
            edit_weights(lambda w: w.update({INNER: w[INNER].int()})),
            "{}/model.safetensors: expected tensors of one floating-point type, "
            "found float64, int32",
            id="integers",
        ),
        pytest.param(
            edit_weights(lambda w: w.update({INNER: w[INNER].half()})),
            "{}/model.safetensors: expected tensors of one floating-point type, "
            "found float16, float64",
            id="mixed",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    damage: Callable[[Path], Any], complaint: str, saved: Path
) -> None:
    (saved / DIGESTS).unlink()  # as of an older bothends: they would tell, and not what is wrong
    damage(saved)
    with pytest.raises(BothendsError) as error:
        load_model(saved)
    message = str(error.value)
    assert message.startswith(complaint.format(saved))
    assert "\n" not in message


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path, make_model: MakeModel) -> None:
    (tmp_path / "file").touch()
    model = make_model("1x1")
    with pytest.raises(BothendsError, match="file/model: cannot make this directory"):
        save_model(tmp_path / "file" / "model", model, describe(model))


@pytest.mark.parametrize(
    ("wanted", "available", "layers"),
    [
        (6, 6, [0, 1, 2, 3, 4, 5]),
        (3, 6, [0, 2, 5]),
        (2, 6, [0, 5]),
        (1, 6, [0]),
        (4, 12, [0, 4, 7, 11]),
        (8, 6, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_layers_are_taken_evenly(wanted: int, available: int, layers: list[int]) -> None:
    assert evenly_spaced(wanted, available) == layers


def test_transfer_to_another_order_and_fewer_layers(tmp_path: Path, make_model: MakeModel) -> None:
    """As in fine-tuning: a 2x1 with two decoder layers from a 1x1 with three, from a directory."""
    teacher = make_model("1x1", decoder_layers=3)
    save_model(tmp_path, teacher, describe(teacher))
    student = make_model("2x1")
    transfer = transfer_weights(tmp_path, student)
    given, got = teacher.state_dict(), student.state_dict()
    for name in got:
        origin = name.replace("decoder.layers.1.", "decoder.layers.2.")
        assert torch.equal(got[name], given[origin]), name
    assert set(transfer.taken) == set(got)
    assert transfer.initialised == ()
    assert set(transfer.left) == {name for name in given if name.startswith("decoder.layers.1.")}


def test_transfer_keeps_what_the_source_lacks_at_its_initialisation(
    make_model: MakeModel,
) -> None:
    teacher = make_model("2x1")
    student = make_model("4x1", decoder_layers=3, vocabulary_size=31)
    before = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    transfer = transfer_weights(teacher, student)
    given, got = teacher.state_dict(), student.state_dict()
    fresh = {"source_embedding.weight", "direction_embedding.weight"}
    fresh |= {name for name in got if name.startswith("decoder.layers.2.")}
    assert set(transfer.initialised) == fresh
    assert transfer.left == ("source_embedding.weight",)
    for name, tensor in got.items():
        assert torch.equal(tensor, before[name] if name in fresh else given[name]), name


def test_transfer_into_float32_casts(make_model: MakeModel) -> None:
    teacher, student = make_model("1x1"), Transformer(tiny_config(), GenerationOrder())
    transfer_weights(teacher, student)
    assert_same_weights(student, teacher.float())


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("width", 8, "has width 16, but the new model has 8; set model.width=16"),
        ("heads", 4, "has heads 2, "),
        ("norm", "pre", "has norm post, "),
    ],
)
def test_weights_that_would_mean_something_else_are_not_transferred(
    saved: Path, make_model: MakeModel, setting: str, value: Any, expected: str
) -> None:
    with pytest.raises(BothendsError, match=expected):
        transfer_weights(saved, make_model("2x1", **{setting: value}))
