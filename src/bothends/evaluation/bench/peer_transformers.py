"""`transformers` as a peer: our weights in a `MarianMTModel`, measured through its `generate`.

What most people run when they run a translation model from a hub: PyTorch in float32. Only this
module imports PyTorch, and only when it is asked for. Marian's network normalises after each
sublayer and ties its output layer, so it stands for the models that do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bothends.convert.to_marian import POSITIONS, marian_state
from bothends.engines.protocol import pad_sources
from bothends.errors import BothendsError
from bothends.evaluation.bench.systems import Label, Request, Threads, TimedOutcome
from bothends.model.config import ModelConfig
from bothends.model.weights import Weights
from bothends.order import IntArray


def marian_config(config: ModelConfig) -> Any:
    """The `MarianConfig` of a model of our sizes and dropout."""
    from transformers import MarianConfig

    special, rates = config.special, config.dropout
    return MarianConfig(
        vocab_size=config.vocabulary_size,
        decoder_vocab_size=config.target_size,
        max_position_embeddings=POSITIONS,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.feed_forward,
        decoder_ffn_dim=config.feed_forward,
        d_model=config.width,
        activation_function=config.activation,
        dropout=rates.residual,
        attention_dropout=rates.attention,
        activation_dropout=rates.activation,
        scale_embedding=config.embedding_scale,
        share_encoder_decoder_embeddings=config.share_embeddings,
        tie_word_embeddings=True,
        pad_token_id=special.pad,
        eos_token_id=special.end,
        bos_token_id=special.start,
        decoder_start_token_id=special.start,
        forced_eos_token_id=None,
    )


def marian(config: ModelConfig, weights: Weights) -> Any:
    """The `MarianMTModel` that computes what a `1x1` model of ours does."""
    import torch
    from transformers import MarianMTModel

    if config.norm == "pre" or not config.tie_output:
        raise BothendsError(
            "the transformers peer is a Marian model, which normalises after each sublayer and "
            "ties its output layer; this model does not: leave it out of --peers"
        )
    model = MarianMTModel(marian_config(config))
    state = {name: torch.from_numpy(value) for name, value in marian_state(config, weights).items()}
    model.load_state_dict(state)
    return model.eval()


class Transformers:
    """`generate` of a Marian model with our weights."""

    def __init__(self, label: Label, config: ModelConfig, weights: Weights) -> None:
        self.label = label
        self._special = config.special
        self._model = marian(config, weights)

    def arrangements(self, cores: int) -> list[Threads]:
        return [Threads(1, cores)]

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome:
        import torch

        torch.set_num_threads(threads.each)
        batch = torch.from_numpy(pad_sources(sources, self._special.pad))
        with torch.inference_mode():
            generated = self._model.generate(
                batch,
                attention_mask=batch != self._special.pad,
                num_beams=request.beam,
                do_sample=False,
                early_stopping=request.beam > 1,
                length_penalty=request.options.length_penalty if request.beam > 1 else None,
                min_new_tokens=request.min_length,
                max_new_tokens=request.max_length + 1,  # its limit counts the end symbol
            )
        tokens = [self._text(row) for row in generated.tolist()]
        steps = [min(len(each), request.max_length) + 1 for each in tokens]
        return TimedOutcome(tokens, steps, parts=None)

    def _text(self, row: list[int]) -> list[int]:
        """The tokens between the start symbol and the end symbol."""
        row = row[1:]
        return row[: row.index(self._special.end)] if self._special.end in row else row
