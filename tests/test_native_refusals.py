"""What the native engine lacks is refused by name, before anything is computed."""

from __future__ import annotations

from typing import Any

import pytest

from bothends.engines.native.engine import _shape
from bothends.errors import BothendsError
from bothends.model.directory import Description
from conftest import tiny_config


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (dict(learned_positions=9), "learned positions"),
        (dict(embedding_norm=True), "a norm on its embeddings"),
        (dict(activation="gelu-tanh"), "the activation gelu-tanh"),
        (dict(norm_epsilon=1e-6), "norms with epsilon 1e-06"),
    ],
)
def test_what_it_cannot_compute(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(BothendsError, match=f"cannot run a model with {what}: use onnx"):
        _shape(Description(model=tiny_config(**changes)))


def test_the_rest_it_can() -> None:
    assert _shape(Description(model=tiny_config(sinusoid="halves")))["halves"]
