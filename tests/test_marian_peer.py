"""A peer that others wrote: our 1x1 model and a Marian model of `transformers`, same weights.

Marian is post-norm with silu, sinusoids in halves, scaled and fully tied embeddings, a bias on the
output, and decoding that starts from the padding symbol. Both run in float64: in float32, rounding
alone would one day decide between two words that are almost equally likely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from bothends.engines.torch import TorchEngine
from bothends.model.config import ModelConfig
from bothends.model.sinusoid import sinusoid
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import GenerationOrder, IntArray
from bothends.text.vocabulary import SpecialTokens
from foreign_models import small_shape

WORDS, PAD, END = 60, 59, 0


def from_marian(marian: Any) -> Transformer:
    """Our model with the weights of a Marian model."""
    theirs: dict[str, Tensor] = marian.state_dict()
    shape = marian.config
    config = ModelConfig(
        vocabulary_size=shape.vocab_size,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        width=shape.d_model,
        heads=shape.encoder_attention_heads,
        feed_forward=shape.encoder_ffn_dim,
        activation="silu",
        output_bias=True,
        sinusoid="halves",
        special=SpecialTokens(
            pad=shape.pad_token_id,
            unknown=1,
            start=shape.decoder_start_token_id,
            end=shape.eos_token_id,
        ),
    )

    def fused(prefix: str, kind: str, *parts: str) -> Tensor:
        return torch.cat([theirs[f"{prefix}.{part}_proj.{kind}"] for part in parts])

    ours = {
        "source_embedding.weight": theirs["model.shared.weight"],
        "output_bias": theirs["final_logits_bias"][0],
    }
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(layers):
            mine, other = f"{stack}.layers.{i}", f"model.{stack}.layers.{i}"
            renamed = {
                "self_attention.output": "self_attn.out_proj",
                "self_attention_norm": "self_attn_layer_norm",
                "feed_forward.inner": "fc1",
                "feed_forward.outer": "fc2",
                "feed_forward_norm": "final_layer_norm",
            }
            if stack == "decoder":
                renamed["cross_attention.output"] = "encoder_attn.out_proj"
                renamed["cross_attention_norm"] = "encoder_attn_layer_norm"
            for kind in ("weight", "bias"):
                ours |= {
                    f"{mine}.{name}.{kind}": theirs[f"{other}.{peer}.{kind}"]
                    for name, peer in renamed.items()
                }
                attention = f"{mine}.self_attention.query_key_value.{kind}"
                ours[attention] = fused(f"{other}.self_attn", kind, "q", "k", "v")
                if stack == "decoder":
                    cross = f"{other}.encoder_attn"
                    ours[f"{mine}.cross_attention.query.{kind}"] = fused(cross, kind, "q")
                    ours[f"{mine}.cross_attention.key_value.{kind}"] = fused(cross, kind, "k", "v")
    model = Transformer(config, GenerationOrder()).to(theirs["model.shared.weight"].dtype)
    model.load_state_dict(ours, strict=True)
    return model.eval()


@pytest.fixture
def marian(seed: int) -> Any:
    """A small Marian model with random weights, large enough for its outputs to vary."""
    config = MarianConfig(
        **{**small_shape(WORDS), "d_model": 64, "max_position_embeddings": 64},
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                # Attention outweighs the rest, or each word would only be followed by itself.
                gain = 6.0 if "attn" in name else 1.0 if "shared" in name else 0.5
                spread = 0.1 if parameter.dim() == 1 else gain * parameter.shape[-1] ** -0.5
                centre = 1.0 if "norm.weight" in name else 0.0
                parameter.copy_(centre + spread * torch.randn_like(parameter))
        for stack in (model.model.encoder, model.model.decoder):
            # Its sinusoids were made in float32, which this network would magnify. They are ours
            # to its precision, and from here on to ours.
            table = stack.embed_positions.weight
            exact = torch.from_numpy(sinusoid(np.arange(len(table)), config.d_model, "halves"))
            torch.testing.assert_close(table, exact, rtol=0, atol=1e-6)
            table.copy_(exact)
        model.final_logits_bias.copy_(0.3 * torch.randn(1, WORDS))
        model.final_logits_bias[0, END] += 1  # so that some sentences end
        model.final_logits_bias[0, PAD] -= 20  # as Marian's models do: padding is never generated
    return model


@pytest.fixture
def source(random: np.random.Generator) -> IntArray:
    """Eight sentences of 1 to 9 pieces and the end symbol, padded."""
    source = np.full((8, 10), PAD)
    for row, length in zip(source, random.integers(1, 10, 8), strict=True):
        row[:length] = random.integers(2, PAD, length)
        row[length] = END
    return source


def test_logits_equal_those_of_marian(
    marian: Any, source: IntArray, random: np.random.Generator
) -> None:
    ours = from_marian(marian)
    tokens = random.integers(0, WORDS, (len(source), 12))
    with torch.no_grad():
        found = ours(
            torch.from_numpy(source),
            torch.from_numpy(tokens),
            BlockTensors.of(ours.order.whole(12)),
        )
        expected = marian(
            input_ids=torch.from_numpy(source),
            attention_mask=torch.from_numpy(source != PAD),
            decoder_input_ids=torch.from_numpy(tokens),
        ).logits
    assert expected.std() > 0.5  # the comparison would mean little between constants
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)


def test_greedy_output_equals_that_of_marian(marian: Any, source: IntArray) -> None:
    ours = from_marian(marian)
    engine, order, steps = TorchEngine(ours), ours.order, 20
    state = engine.encode(source)
    tokens = np.full((len(source), 1), PAD)
    for step in range(steps):
        best = engine.step(state, tokens[:, -1:], order.block(step), k=1)
        ended = (tokens[:, 1:] == END).any(axis=1, keepdims=True)
        tokens = np.concatenate([tokens, np.where(ended, PAD, best.ids[:, :, 0])], axis=1)
    generated = marian.generate(
        input_ids=torch.from_numpy(source),
        attention_mask=torch.from_numpy(source != PAD),
        num_beams=1,
        do_sample=False,
        max_new_tokens=steps,
    ).numpy()
    assert len(np.unique(tokens)) > 3  # not one word over and over
    np.testing.assert_array_equal(tokens[:, : generated.shape[1]], generated)
    assert (tokens[:, generated.shape[1] :] == PAD).all()
