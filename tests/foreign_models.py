"""Tiny models of other libraries with random weights, in directories as these libraries write."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch

#: What a tokenizer meets in the wild: scripts, accents, emoji, controls, numbers, right to left.
_ODD = [
    "Größe und Übermut",
    "cafe\u0301 noe\u0308l",
    "naïve façade",
    "3.14159 1,000,000 007",
    "x² ½ ㎏ ﬁne",
    "e\u0301e\u0300",
    "שלום עולם",
    "مرحبا بالعالم",
    "\u202bright\u202c",
    "日本語の文章",
    "你好世界",
    "ไทย",
    "😀👍🏽",
    "👩‍👩‍👧",
    "a\tb",
    "bell\x07",
    "\x00nul",
    "zero\u200bwidth",
    "\ufeffbom",
    "  two  spaces  ",
    "non\u00a0breaking",
    "ideo\u3000graphic",
    "“quotes” ‘and’ «more»",  # noqa: RUF001
    "dash – and — dash",  # noqa: RUF001
    "don't can't it's",
    "http://example.org/?q=1&r=2#x",
    "<b>bold</b>",
    "▁underline▁",
    "Ġ and Ċ",
    "ÅÄÖ åäö ß ẞ",
    "Ωμέγα",
    "Привет, мир!",
    "end .",
    "what ?! no , yes",
    "",
    " ",
    "\u2028line",
    "a" * 60,
    "`~!@#$%^&*()_+-=[]{}|;:",
]


def odd_lines(count: int = 2000, seed: int = 5) -> list[str]:
    """Lines that mix odd pieces and plain words in every way."""
    generator = random.Random(seed)
    words = "the a of and house tree river small great old new goes comes sees 12 1999".split()
    lines = list(_ODD)
    while len(lines) < count:
        pieces = generator.choices(_ODD, k=generator.randint(0, 2))
        pieces += generator.choices(words, k=generator.randint(0, 5))
        generator.shuffle(pieces)
        lines.append(generator.choice([" ", " ", "", "  "]).join(pieces))
    # Line breaks of every kind end a line before it reaches a tokenizer.
    return [" ".join(line.splitlines()) for line in lines]


def _training_text() -> list[str]:
    return [line for line in odd_lines(400, seed=1) if line.strip()]


def _train_sentencepiece(size: int, seed: int) -> bytes:
    model = io.BytesIO()
    lines = [line.replace("\x00", "") for line in odd_lines(400, seed=seed) if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        model_type="unigram",
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def _pieces(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def small_shape(words: int) -> dict[str, Any]:
    """The sizes of a small network, as `transformers` names them."""
    return dict(
        vocab_size=words,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=128,
    )


def _randomise(model: Any, seed: int) -> None:
    """Weights whose output varies from token to token and from sentence to sentence."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name and not parameter.requires_grad:
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() == 1:
                parameter.copy_(0.1 * noise + (1.0 if "norm" in name and "weight" in name else 0.0))
            else:
                # Attention outweighs the rest, or each word would only be followed by itself.
                gain = (
                    6.0 if "attn" in name else 1.0 if "embed" in name or "shared" in name else 0.5
                )
                parameter.copy_(gain * parameter.shape[-1] ** -0.5 * noise)
        # Some sentences end: the last norm adds a vector that the end symbol points along.
        decoder = model.model.decoder
        last = getattr(decoder, "layer_norm", None) or decoder.layers[-1].final_layer_norm
        last.bias.mul_(3)
        for embedding in {
            id(each.weight): each for each in (decoder.embed_tokens, model.lm_head)
        }.values():
            embedding.weight[model.config.eos_token_id] += 0.9 * last.bias / last.bias.norm()
            embedding.weight[model.config.pad_token_id] = 0
        if hasattr(model, "final_logits_bias"):
            bias = 0.3 * torch.randn(model.final_logits_bias.shape, generator=generator)
            model.final_logits_bias.copy_(bias)
    model.eval()


def marian(directory: Path, separate: bool = False, seed: int = 0) -> Any:
    from transformers import MarianConfig, MarianMTModel

    directory.mkdir(parents=True, exist_ok=True)
    models = [_train_sentencepiece(300, 1), _train_sentencepiece(260, 2)]
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (directory / name).write_bytes(model)
    marked = ["</s>", "<unk>", ">>deu<<", ">>fra<<"]
    if separate:
        sides = [[*dict.fromkeys([*marked, *_pieces(model)[3:], "<pad>"])] for model in models]
        # Both sides have the same special tokens, and so the same ids for them.
        sides = [
            [side[0], side[1], "<pad>", *(x for x in side[2:] if x != "<pad>")] for side in sides
        ]
        files = ["vocab.json", "target_vocab.json"]
    else:
        both = [
            *dict.fromkeys([*marked, *_pieces(models[0])[3:], *_pieces(models[1])[3:], "<pad>"])
        ]
        sides, files = [both], ["vocab.json"]
    for name, side in zip(files, sides, strict=True):
        content = {entry: number for number, entry in enumerate(side)}
        (directory / name).write_text(json.dumps(content))
    pad = sides[0].index("<pad>")
    settings = small_shape(len(sides[0]))
    if separate:
        settings |= dict(decoder_vocab_size=len(sides[1]), share_encoder_decoder_embeddings=False)
    config = MarianConfig(
        **settings,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config)
    model.generation_config.bad_words_ids = [[pad]]
    _save(model, directory, seed)
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate})
    )
    return model


def _bpe(kind: str, size: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet: list[str] = []
    if kind == "bytes":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_training_text(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def _unigram(special: list[str]) -> list[tuple[str, float]]:
    return [(piece, 0.0) for piece in special] + [
        (piece, -float(rank) / 10)
        for rank, piece in enumerate(_pieces(_train_sentencepiece(300, 3))[3:], 1)
    ]


def bart(directory: Path, seed: int = 0) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration, BartTokenizer

    vocabulary, merges = _bpe("bytes", 400)
    tokenizer = BartTokenizer(vocab=vocabulary, merges=merges)
    tokenizer.save_pretrained(directory)
    config = BartConfig(
        **small_shape(len(tokenizer)),
        activation_function="gelu",
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = 0
    return _save(model, directory, seed)


def nllb(directory: Path, seed: int = 0) -> Any:
    from transformers import NllbTokenizer

    vocabulary, merges = _bpe("metaspace", 400)
    tokenizer = NllbTokenizer(
        vocab=vocabulary,
        merges=merges,
        extra_special_tokens=["eng_Latn", "deu_Latn", "fra_Latn"],
        src_lang="eng_Latn",
        tgt_lang="deu_Latn",
    )
    tokenizer.save_pretrained(directory)
    return _m2m_model(directory, len(tokenizer) + 2, seed)


def m2m(directory: Path, seed: int = 0) -> Any:
    from transformers import M2M100Tokenizer

    directory.mkdir(parents=True, exist_ok=True)
    model = _train_sentencepiece(300, 4)
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    entries = ["<s>", "<pad>", "</s>", "<unk>", *_pieces(model)[3:]]
    (directory / "vocab.json").write_text(json.dumps({e: n for n, e in enumerate(entries)}))
    tokenizer = M2M100Tokenizer(
        str(directory / "vocab.json"),
        str(directory / "sentencepiece.bpe.model"),
        src_lang="en",
        tgt_lang="de",
    )
    tokenizer.save_pretrained(directory)
    return _m2m_model(directory, len(entries) + 100 + 8, seed)


def _m2m_model(directory: Path, words: int, seed: int) -> Any:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    config = M2M100Config(
        **small_shape(words),
        activation_function="relu",
        scale_embedding=True,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    return _save(M2M100ForConditionalGeneration(config), directory, seed)


def mbart(directory: Path, fifty: bool = False, seed: int = 0) -> Any:
    from transformers import (
        MBart50Tokenizer,
        MBartConfig,
        MBartForConditionalGeneration,
        MBartTokenizer,
    )

    pieces = _unigram(["<s>", "<pad>", "</s>", "<unk>"])
    kind = MBart50Tokenizer if fifty else MBartTokenizer
    languages = [("ar_AR", 0.0)] if fifty else []
    tokenizer = kind(vocab=[*pieces, *languages], src_lang="en_XX", tgt_lang="de_DE")
    tokenizer.save_pretrained(directory)
    config = MBartConfig(
        **small_shape(len(tokenizer)),
        activation_function="gelu",
        scale_embedding=True,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2 if fifty else None,
        forced_eos_token_id=None,
    )
    return _save(MBartForConditionalGeneration(config), directory, seed)


def pegasus(directory: Path, seed: int = 0) -> Any:
    from transformers import PegasusConfig, PegasusForConditionalGeneration, PegasusTokenizer

    pieces = _unigram(["<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk>"])
    tokenizer = PegasusTokenizer(vocab=pieces, offset=5)
    tokenizer.save_pretrained(directory)
    config = PegasusConfig(
        **small_shape(len(tokenizer)),
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    return _save(PegasusForConditionalGeneration(config), directory, seed)


def _save(model: Any, directory: Path, seed: int) -> Any:
    _randomise(model, seed)
    model.save_pretrained(directory)
    return model


def exact_sinusoids(model: Any) -> None:
    """Give a model in float64 sinusoids to its precision: it makes them in float32."""
    from bothends.model.sinusoid import sinusoid

    family = model.config.model_type
    for stack in (model.model.encoder, model.model.decoder):
        table = stack.embed_positions
        if family == "m2m_100":
            rows = sinusoid(np.arange(len(table.weights)), model.config.d_model, "tensor2tensor")
            rows[table.padding_idx] = 0
            torch.testing.assert_close(table.weights, torch.from_numpy(rows), rtol=0, atol=1e-5)
            table.weights.copy_(torch.from_numpy(rows))
        elif family in ("marian", "pegasus"):
            rows = sinusoid(np.arange(len(table.weight)), model.config.d_model, "halves")
            torch.testing.assert_close(table.weight, torch.from_numpy(rows), rtol=0, atol=1e-5)
            with torch.no_grad():
                table.weight.copy_(torch.from_numpy(rows))
