"""The shape of the network as data: defaults, presets, refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from bothends.errors import UsageError
from bothends.model.config import PRESETS, ModelConfig, preset
from bothends.storage.checked import CheckError


def test_the_default_is_the_papers_base() -> None:
    config = ModelConfig()
    assert config == preset("base")
    assert (config.encoder_layers, config.decoder_layers) == (6, 6)
    assert (config.width, config.heads, config.head_width, config.feed_forward) == (
        512,
        8,
        64,
        2048,
    )


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid_and_can_be_changed(name: str) -> None:
    changed = preset(name, decoder_layers=1, vocabulary_size=100)
    assert changed.decoder_layers == 1
    assert changed.target_size == changed.vocabulary_size == 100
    assert changed.width == preset(name).width


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown preset 'smal'; did you mean small\\?"):
        preset("smal")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (dict(width=100, heads=8), "width 100 is not a multiple of heads 8"),
        (dict(width=15, heads=3), "width 15 is odd, and a sinusoid needs pairs"),
        (dict(heads=0), "heads: Input should be greater than or equal to 1"),
        (dict(decoder_layers=0), "decoder_layers: Input should be greater than or equal to 1"),
        (dict(vocabulary_size=3), "a special token is outside the vocabulary of 3"),
        (
            dict(target_vocabulary_size=3, share_embeddings=False),
            "a special token is outside the vocabulary of 3",
        ),
        (dict(special=dict(pad=-1)), "a special token is outside the vocabulary of 32000"),
        (
            dict(target_vocabulary_size=100),
            "share_embeddings needs one vocabulary for source and target",
        ),
        (dict(norm="both"), "norm: Input should be 'pre' or 'post'"),
        (
            dict(activation="tanh"),
            "activation: Input should be 'relu', 'gelu', 'gelu-tanh' or 'silu'",
        ),
        (dict(dropout=dict(residual=1.0)), "dropout.residual: Input should be less than 1"),
        (dict(width=1_000_000_000), "width: Input should be less than or equal to 65536"),
        (dict(encoder_layers=100_000), "encoder_layers: Input should be less than or equal to 512"),
        (
            dict(width=65_536, encoder_layers=512),
            "layers of these sizes have 9,141,301,018,624 weights; "
            "expected at most 100,000,000,000",
        ),
        (
            dict(frame=dict(prompt=[32000])),
            "a token of the frame is outside the target vocabulary of 32000",
        ),
        (dict(depth=3), "depth: Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(CheckError) as refusal:
        ModelConfig.read(settings)
    assert str(refusal.value) == complaint


def test_a_config_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ModelConfig().width = 256  # type: ignore[misc]
