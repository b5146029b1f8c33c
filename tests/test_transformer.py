"""The network: stepping against the whole target, a peer, and the parts of a config.

Everything is in float64, where two ways to compute one thing agree to about 1e-15; 1e-10 leaves
room for sums in another order and none for a mistake.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bothends.engines.protocol import FloatArray
from bothends.engines.torch import TorchEngine
from bothends.model.config import Dropout, ModelConfig
from bothends.model.sinusoid import sinusoid
from bothends.model.torch.transformer import BlockTensors, Transformer
from bothends.order import GenerationOrder, IntArray
from conftest import ALL_ORDERS, MakeModel, order_tensors, random_source, tiny_config

WORDS = 23
LAYOUTS = [
    pytest.param(dict(norm="post"), id="post"),
    pytest.param(dict(norm="pre"), id="pre"),
    pytest.param(dict(activation="gelu"), id="gelu"),
    pytest.param(dict(activation="silu"), id="silu"),
    pytest.param(dict(share_embeddings=False), id="separate-embeddings"),
    pytest.param(dict(share_embeddings=False, target_vocabulary_size=29), id="two-vocabularies"),
    pytest.param(dict(tie_output=False), id="untied"),
    pytest.param(dict(embedding_scale=False), id="unscaled"),
    pytest.param(dict(output_bias=True), id="bias"),
    pytest.param(dict(sinusoid="halves"), id="halves"),
    pytest.param(dict(encoder_layers=3, decoder_layers=1), id="layers-apart"),
    pytest.param(dict(sinusoid="tensor2tensor", position_offset=2), id="tensor2tensor"),
    pytest.param(dict(learned_positions=40), id="learned-positions"),
    pytest.param(dict(embedding_norm=True), id="embedding-norm"),
    pytest.param(dict(activation="gelu-tanh"), id="gelu-tanh"),
]


def assert_equal(found: FloatArray, expected: FloatArray, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def full_hidden(model: Transformer, source: IntArray, tokens: IntArray) -> FloatArray:
    """Hidden states of all slots at once, as NumPy."""
    hidden = model.hidden(
        torch.from_numpy(source),
        torch.from_numpy(tokens),
        order_tensors(model.order, tokens.shape[1]),
    )
    array: FloatArray = hidden.detach().numpy()
    return array


def stepped_hidden(
    model: Transformer, source: IntArray, blocks: int, random: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray]:
    """Step with random tokens as a search would, with rows that fork, move and die.

    Returns the sentences, tokens and hidden states of the rows that are left, to be compared with
    the whole targets that they have become.
    """
    order, size = model.order, model.order.block_size
    state = model.start(model.encode(torch.from_numpy(source)))
    sentences = np.arange(len(source))  # of each line of rows
    tokens = np.zeros((len(source), 0), dtype=np.int64)
    hidden = np.zeros((len(source), 0, model.config.width))
    for block in range(blocks):
        fed = random.integers(0, WORDS, (len(tokens), size))
        new = model.step(state, torch.from_numpy(fed), BlockTensors.of(order.block(block)))
        tokens = np.concatenate([tokens, fed], axis=1)
        hidden = np.concatenate([hidden, new.detach().numpy()], axis=1)
        each = len(tokens) // len(sentences)
        staying = random.permutation(len(sentences))[: max(1, len(sentences) - block)]
        rows = staying[:, None] * each + random.integers(0, each, (len(staying), 2 + block % 2))
        state = state.select(rows)
        sentences, tokens, hidden = sentences[staying], tokens[rows.ravel()], hidden[rows.ravel()]
    return np.repeat(sentences, len(tokens) // len(sentences)), tokens, hidden


@pytest.mark.parametrize("order", ALL_ORDERS, ids=str)
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("sentences", [1, 8])
@pytest.mark.parametrize("padded", [False, True], ids=["unpadded", "padded"])
def test_steps_equal_the_whole_target(
    order: GenerationOrder,
    norm: str,
    sentences: int,
    padded: bool,
    make_model: MakeModel,
    random: np.random.Generator,
) -> None:
    model = make_model(order, norm=norm)
    source = random_source(random, sentences, 6, WORDS, padded=padded)
    of_row, tokens, hidden = stepped_hidden(model, source, 4, random)
    assert_equal(hidden, full_hidden(model, source[of_row], tokens))


@pytest.mark.parametrize("changes", LAYOUTS)
@pytest.mark.parametrize("order", ["2x1", "4x1"])
def test_steps_equal_the_whole_target_in_every_layout(
    changes: dict[str, Any], order: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model(order, **changes)
    source = random_source(random, 3, 6, WORDS, padded=True)
    of_row, tokens, hidden = stepped_hidden(model, source, 3, random)
    assert_equal(hidden, full_hidden(model, source[of_row], tokens))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_wanted_slots_are_those_of_the_whole_target(
    norm: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model("2x2", norm=norm)
    source = torch.from_numpy(random_source(random, 3, 6, WORDS, padded=True))
    tokens = torch.from_numpy(random.integers(0, WORDS, (3, 8)))
    target = (tokens, order_tensors(model.order, 8))
    wanted = torch.tensor([0, 5, 7, 9, 20, 23])
    whole = model.hidden(source, *target).flatten(0, 1)
    assert_equal(
        model.hidden(source, *target, wanted).detach().numpy(), whole[wanted].detach().numpy()
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_sentence_does_not_notice_its_batch(
    norm: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    model = make_model("2x1", norm=norm)
    source = random_source(random, 8, 6, WORDS, padded=True)
    source[0], source[1] = [3, 0, 0, 0, 0, 0, 0, 0], [7, 3, 0, 0, 0, 0, 0, 0]  # empty; one token
    tokens = random.integers(0, WORDS, (8, 6))
    together = full_hidden(model, source, tokens)
    for i, row in enumerate(source):
        alone = full_hidden(model, row[row != 0][None], tokens[i : i + 1])
        assert_equal(together[i : i + 1], alone)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_equal_those_of_pytorch(
    norm: str, activation: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    """The same weights in the layers that PyTorch ships give the same logits."""
    model = make_model("2x2", norm=norm, activation=activation)
    config = model.config
    shape: dict[str, Any] = dict(
        d_model=config.width,
        nhead=config.heads,
        dim_feedforward=config.feed_forward,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )

    def attention(prefix: str, name: str) -> dict[str, Tensor]:
        own, parts = f"{prefix}.{name}", ["query_key_value"]
        if name == "cross_attention":
            parts = ["query", "key_value"]
        peer = "multihead_attn" if name == "cross_attention" else "self_attn"
        result = {
            f"{peer}.in_proj_{kind}": torch.cat([weights[f"{own}.{part}.{kind}"] for part in parts])
            for kind in ("weight", "bias")
        }
        for kind in ("weight", "bias"):
            result[f"{peer}.out_proj.{kind}"] = weights[f"{own}.output.{kind}"]
        return result

    def layer(stack: str, i: int, peer: nn.Module) -> nn.Module:
        prefix = f"{stack}.layers.{i}"
        attentions = ["self_attention", "cross_attention"][: 1 if stack == "encoder" else 2]
        state: dict[str, Tensor] = {}
        for name in attentions:
            state |= attention(prefix, name)
        for number, name in enumerate([*attentions, "feed_forward"], start=1):
            for kind in ("weight", "bias"):
                state[f"norm{number}.{kind}"] = weights[f"{prefix}.{name}_norm.{kind}"]
        for kind in ("weight", "bias"):
            state[f"linear1.{kind}"] = weights[f"{prefix}.feed_forward.inner.{kind}"]
            state[f"linear2.{kind}"] = weights[f"{prefix}.feed_forward.outer.{kind}"]
        peer.load_state_dict(state)
        return peer

    weights = model.state_dict()
    source = torch.from_numpy(random_source(random, 3, 6, WORDS, padded=True))
    tokens = torch.from_numpy(random.integers(0, WORDS, (3, 8)))
    block = order_tensors(model.order, 8)
    with torch.no_grad():
        length = source.shape[1]
        table = model.source_embedding
        memory = model._embed(table, source, model._encodings(torch.arange(length), length))
        hidden = model._embed(table, tokens, model._encodings(block.positions, 8))
        # In PyTorch's masks True means "may not". In evaluation its layers take another path, which
        # drops padding from the output; without dropout, training is the same network.
        padding = source == 0
        for i in range(2):
            peer = layer("encoder", i, nn.TransformerEncoderLayer(**shape)).train()
            memory = peer(memory, src_key_padding_mask=padding)
        memory = model.encoder.norm(memory)
        for i in range(2):
            peer = layer("decoder", i, nn.TransformerDecoderLayer(**shape)).train()
            hidden = peer(hidden, memory, tgt_mask=~block.mask, memory_key_padding_mask=padding)
        hidden = model.decoder.norm(hidden)
        ours = model.hidden(source, tokens, block)
    assert_equal(ours.numpy(), hidden.numpy())


CONTRACT = {
    "source_embedding.weight": "V D",
    "target_embedding.weight": "W D",
    "direction_embedding.weight": "4 D",
    "output.weight": "W D",
    "output_bias": "W",
    **{
        f"{stack}.layers.{i}.{name}": shape
        for stack in ("encoder", "decoder")
        for i in range(2)
        for name, shape in {
            "self_attention.query_key_value.weight": "3D D",
            "self_attention.query_key_value.bias": "3D",
            "self_attention.output.weight": "D D",
            "self_attention.output.bias": "D",
            "self_attention_norm.weight": "D",
            "self_attention_norm.bias": "D",
            "feed_forward.inner.weight": "F D",
            "feed_forward.inner.bias": "F",
            "feed_forward.outer.weight": "D F",
            "feed_forward.outer.bias": "D",
            "feed_forward_norm.weight": "D",
            "feed_forward_norm.bias": "D",
        }.items()
    },
    **{
        f"decoder.layers.{i}.{name}": shape
        for i in range(2)
        for name, shape in {
            "cross_attention.query.weight": "D D",
            "cross_attention.query.bias": "D",
            "cross_attention.key_value.weight": "2D D",
            "cross_attention.key_value.bias": "2D",
            "cross_attention.output.weight": "D D",
            "cross_attention.output.bias": "D",
            "cross_attention_norm.weight": "D",
            "cross_attention_norm.bias": "D",
        }.items()
    },
    **{f"{stack}.norm.{k}": "D" for stack in ("encoder", "decoder") for k in ("weight", "bias")},
}


def test_weights_have_the_names_that_other_tools_read() -> None:
    """Every tensor of the largest layout, and which of them the default layout does without."""
    largest = tiny_config(
        target_vocabulary_size=29,
        share_embeddings=False,
        tie_output=False,
        output_bias=True,
        norm="pre",
    )
    sizes = {"V": 23, "W": 29, "D": 16, "2D": 32, "3D": 48, "F": 24, "4": 4}
    found = Transformer(largest, GenerationOrder.parse("4x1")).state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in found.items()} == {
        name: tuple(sizes[letter] for letter in shape.split()) for name, shape in CONTRACT.items()
    }
    plain = Transformer(tiny_config(), GenerationOrder.parse("2x1")).state_dict()
    optional = ("target_", "direction_", "output", "encoder.norm", "decoder.norm")
    assert set(plain) == {name for name in CONTRACT if not name.startswith(optional)}


@pytest.mark.parametrize("kind", ["residual", "attention", "activation", "embedding"])
def test_each_dropout_acts_in_training_and_only_there(
    kind: str, make_model: MakeModel, random: np.random.Generator
) -> None:
    none = dict(residual=0.0, attention=0.0, activation=0.0, embedding=0.0)
    model = make_model("2x1", dropout=Dropout(**{**none, kind: 0.5}))
    source = random_source(random, 2, 5, WORDS, padded=False)
    tokens = random.integers(0, WORDS, (2, 4))
    first, second = (full_hidden(model, source, tokens) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    model.train()
    third, fourth = (full_hidden(model, source, tokens) for _ in range(2))
    assert not np.allclose(third, fourth)


def test_directions_matter_from_four_on(make_model: MakeModel, random: np.random.Generator) -> None:
    source = torch.from_numpy(random_source(random, 2, 5, WORDS, padded=False))
    tokens = torch.from_numpy(random.integers(0, WORDS, (2, 8)))
    for text, matter in {"2x2": False, "4x1": True}.items():
        model = make_model(text)
        block = order_tensors(model.order, 8)
        given = model(source, tokens, block)
        swapped = model(source, tokens, block._replace(directions=block.directions.flip(0)))
        assert torch.equal(given, swapped) is not matter


@pytest.mark.parametrize("tie_output", [True, False])
@pytest.mark.parametrize("embedding_scale", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("name", ["tiny", "wide"])
def test_loss_starts_near_chance(
    name: str,
    norm: Literal["pre", "post"],
    embedding_scale: bool,
    tie_output: bool,
    random: np.random.Generator,
) -> None:
    """Tied logits start with a deviation of a half, which costs an eighth of a nat."""
    words = 1000
    width = {"tiny": 64, "wide": 256}[name]
    config = ModelConfig(
        vocabulary_size=words,
        encoder_layers=2,
        decoder_layers=2,
        width=width,
        heads=4,
        feed_forward=width,
        norm=norm,
        embedding_scale=embedding_scale,
        tie_output=tie_output,
    )
    model = Transformer(config, GenerationOrder.parse("4x1"))
    targets = random.integers(4, words, (8, 16))
    fed = torch.from_numpy(model.order.shift(targets, 2))
    source = torch.from_numpy(random_source(random, 8, 12, words, padded=True))
    logits = model(source, fed, order_tensors(model.order, 16))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(targets).flatten())
    # The mean of 128 losses with a deviation of a half moves by 0.05, or by more where slots agree.
    assert loss.item() == pytest.approx(math.log(words), abs=0.4)


def test_positions_are_exact_in_float64_and_survive_inference(
    make_model: MakeModel, random: np.random.Generator
) -> None:
    """Beyond the first table, in a change of precision, and in training after decoding."""
    model = make_model("2x1", embedding_scale=False)
    engine = TorchEngine(model)
    engine.encode(random_source(random, 1, 300, WORDS, padded=False))
    tokens = torch.zeros(1, 700, dtype=torch.int64)
    positions = torch.from_numpy(model.order.positions(700))
    for precision in (torch.float64, torch.float32, torch.float64):
        model = model.to(precision)
        encodings = model._encodings(positions, 700)
        encoded = model._embed(model.source_embedding, tokens, encodings)
        torch.autograd.grad(encoded.sum(), model.source_embedding.weight)
        added = (encoded - model.source_embedding.weight[0]).detach()[0].double().numpy()
        expected = sinusoid(model.order.positions(700), 16, "interleaved")
        digits = 1e-12 if precision == torch.float64 else 1e-6
        assert_equal(added, expected, digits)
