"""The network as data: the same tensors as the modules have, and one reader for them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import bothends
from bothends.errors import BothendsError
from bothends.evaluation.bench.synthetic import random_weights
from bothends.model.config import Architecture, ModelConfig, preset
from bothends.model.spec import Network, Projection, tensors
from bothends.model.torch.transformer import Transformer
from bothends.model.weights import TensorFile
from bothends.order import GenerationOrder
from bothends.training.recipe import ModelSettings, Recipe
from conftest import tiny_config

LAYOUTS: list[dict[str, Any]] = [
    dict(),
    dict(norm="pre", tie_output=False, output_bias=True),
    dict(share_embeddings=False, target_vocabulary_size=29),
]


@pytest.mark.parametrize("order", ["1x1", "2x1", "4x1"])
@pytest.mark.parametrize("changes", LAYOUTS)
def test_the_description_and_the_modules_agree(changes: dict[str, Any], order: str) -> None:
    model = Transformer(tiny_config(**changes), GenerationOrder.parse(order))
    described = {tensor.name: tensor.shape for tensor in model.network.tensors()}
    assert described == {name: tuple(each.shape) for name, each in model.state_dict().items()}
    assert sum(tensor.size for tensor in model.network.tensors()) == sum(
        parameter.numel() for parameter in model.parameters()
    )


def test_the_names_of_tensors_are_spelled_in_the_description_alone() -> None:
    """Not in C++ either, which is handed them. Converters spell those of other libraries."""
    settings: dict[str, Any] = dict(
        norm="pre", tie_output=False, share_embeddings=False, embedding_norm=True
    )
    config = tiny_config(**settings, target_vocabulary_size=29)
    names = [tensor.name for tensor in Network.of(config, GenerationOrder.parse("4x1")).tensors()]
    spelled = {
        ".".join(pair)
        for name in names
        for pair in pairwise(part for part in name.split(".") if not part.isdigit())
    }
    package = Path(bothends.__file__).parent
    elsewhere = [
        f"{path.relative_to(package)}: {literal}"
        for pattern in ("*.py", "*.cc", "*.h", "*.inl")
        for path in package.rglob(pattern)
        if path != package / "model" / "spec.py" and path.parent != package / "convert"
        for literal in re.findall(r"""["'`]([^"'`\n]*)["'`]""", path.read_text(encoding="utf-8"))
        if any(pair in literal for pair in spelled)
    ]
    assert elsewhere == []


def test_kinds_say_what_a_tensor_does() -> None:
    network = Network.of(tiny_config(norm="pre", output_bias=True), GenerationOrder.parse("4x1"))
    kinds = {tensor.name: tensor.kind for tensor in network.tensors()}
    for name, kind in kinds.items():
        if "embedding" in name:
            assert kind == "table"
        elif "norm" in name:
            assert kind == ("gain" if name.endswith("weight") else "shift")
        else:
            assert kind == ("matrix" if name.endswith("weight") else "bias")
    assert list(kinds)[-1] == "direction_embedding.weight"  # the only one that an order adds


def test_parts_lie_in_a_projection_from_the_top_down() -> None:
    config = tiny_config()
    model = Transformer(config, GenerationOrder())
    fused = model.network.decoder.layers[0].self_attention.query_key_value
    assert isinstance(fused, Projection)
    assert fused.parts == ("query", "key", "value")
    height, inputs = fused.weight.shape
    assert (height, inputs) == (3 * config.width, config.width)
    assert len(tensors(model.network.decoder.layers[0])) == 20


def test_random_weights_are_the_ones_that_they_have_always_been() -> None:
    """Benchmarks of different versions are of the same network."""
    config = preset("tiny", vocabulary_size=50, norm="pre", tie_output=False, output_bias=True)
    digest = hashlib.sha256()
    for name, array in sorted(random_weights(config, GenerationOrder.parse("4x1"), 7).items()):
        digest.update(name.encode() + array.tobytes())
    assert digest.hexdigest() == DIGEST


DIGEST = "80a78cb0e9e2eaf679c6112044ac430df7f6989737a0e273acc9e10705c6baae"


def test_every_setting_of_the_architecture_can_be_set_in_a_recipe() -> None:
    assert set(ModelSettings.model_fields) - {"preset"} == {
        field.name for field in fields(Architecture)
    }
    recipe = Recipe.model_validate(
        {"data": {"prepared": "x"}, "model": {"preset": "tiny", "sinusoid": "halves"}}
    )
    config = recipe.model.config(50, 50, ModelConfig().special)
    assert config == preset("tiny", vocabulary_size=50, sinusoid="halves")


def test_a_recipe_is_written_as_it_was_given() -> None:
    """What the preset says is null, so that a dump reads as before and digests stay."""
    model = ModelSettings.model_validate({"preset": "small", "decoder_layers": 1, "width": None})
    assert model.encoder_layers == 3
    dump = model.model_dump(mode="json")
    assert dump == {
        "preset": "small",
        "encoder_layers": None,
        "decoder_layers": 1,
        "width": None,
        "heads": None,
        "feed_forward": None,
        "activation": None,
        "norm": None,
        "dropout": {"residual": 0.1, "attention": 0.1, "activation": 0.0, "embedding": 0.1},
        "share_embeddings": None,
        "tie_output": None,
        "embedding_scale": None,
        "output_bias": None,
    }
    assert ModelSettings.model_validate(dump) == model


def test_a_configuration_is_written_in_the_order_that_it_always_had() -> None:
    names = list(ModelConfig().dump())
    assert names[:3] == ["vocabulary_size", "target_vocabulary_size", "encoder_layers"]
    assert names[-2:] == ["sinusoid", "special"]


@pytest.mark.parametrize(
    "precision", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32]
)
def test_tensors_are_read_as_they_were_saved(precision: torch.dtype, tmp_path: Path) -> None:
    saved = {"a": torch.randn(3, 4).to(precision), "b": torch.randn(0, 2).to(precision)}
    save_file(saved, tmp_path / "x.safetensors", metadata={"format": "pt"})
    file = TensorFile(tmp_path / "x.safetensors")
    assert sorted(file.names) == ["a", "b"]
    for name, tensor in saved.items():
        assert file.precision(name) == str(precision).removeprefix("torch.")
        assert file.shape(name) == tuple(tensor.shape)
        exact = tensor.float() if precision == torch.bfloat16 else tensor
        np.testing.assert_array_equal(file.read(name), exact.numpy())


def _file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", ""),
        (b"1234567", "shorter than its header"),
        (b"\xff" * 100, "shorter than its header"),
        (_file(b"{"), "Expecting property name"),
        (_file([1]), "no table of contents"),
        (_file({"a": {}}), "entry for tensor a is damaged"),
        (_file({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}), "a is damaged"),
        (_file({"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}}), "a is damaged"),
        (_file({"a": {"dtype": "Q4", "shape": [1], "data_offsets": [0, 4]}}), "unknown type Q4"),
        (_file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}), "its shape 8"),
        (_file({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"abc"), "within"),
    ],
)
def test_a_file_that_is_damaged(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(BothendsError, match="damaged, not a file of weights") as caught:
        TensorFile(path)
    assert complaint in str(caught.value)
