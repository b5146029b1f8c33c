"""A `1x1` model to begin with: the teacher's own weights, with fewer words and another decoder.

    python begin.py --teacher MODEL_DIRECTORY --text a.en a.pt b.en b.pt ... --output begin-1x1

The teacher is a Marian model as Firefox has it: a Transformer encoder, and a decoder whose layers
have a recurrent unit (SSRU) where ours attend to what is written. We take the embeddings, the
encoder, and of the decoder the attention to the source, the feed-forward layers and the norms.
Self-attention is new. Its values begin as the input of the unit, so that uniform attention averages
what the unit adds up. Such a model cannot translate yet, but it learns to within an hour on two
cores, where random weights take days.

The vocabulary keeps the commonest pieces, every single character, and no piece of several digits,
so that every number is spelled digit by digit. Bytes spell whatever else there is.
"""

from __future__ import annotations

import argparse
import string
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from bothends.convert.result import ConvertedModel
from bothends.jobs.digests import file_digest
from bothends.model.config import ModelConfig
from bothends.model.directory import Description
from bothends.model.spec import DecoderLayer, EncoderLayer, Network, Norm, Projection
from bothends.order import GenerationOrder
from bothends.text.vocabulary import SPACE, VOCABULARY, SpecialTokens, Vocabularies, Vocabulary

Array = NDArray[np.float32]
AnyArray = NDArray[np.floating]

#: Marian's codes for the types of an array that such a file has.
FLOAT32, INT8 = 0x404, 0x4101
#: Letters of Portuguese that a vocabulary must spell even where the text has no such word.
LETTERS = string.ascii_letters + "áâãàéêíóôõúüçÁÂÃÀÉÊÍÓÔÕÚÜÇºª"
CHARACTERS = LETTERS + string.digits + string.punctuation + "–—‘’“”…€£°«»•"  # noqa: RUF001
END, UNKNOWN = 0, 1  # in Marian's vocabularies


def read_marian(path: Path) -> dict[str, Array]:
    """The arrays of a Marian file in float32, matrices as (outputs, inputs)."""
    content = path.read_bytes()
    _, count = struct.unpack_from("<QQ", content)
    place = 16
    headers = [struct.unpack_from("<QQQQ", content, place + 32 * i) for i in range(count)]
    place += 32 * count
    names, shapes = [], []
    for length, *_ in headers:
        names.append(content[place : place + length - 1].decode())
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, place))
        place += 4 * dimensions
    (padding,) = struct.unpack_from("<Q", content, place)
    place += 8 + padding
    arrays = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        elements = int(np.prod(shape))
        if kind == FLOAT32:
            arrays[name] = np.frombuffer(content, np.float32, elements, place).reshape(shape).copy()
        elif kind == INT8 and not name.endswith("_QuantMultA"):
            rounded = np.frombuffer(content, np.int8, elements, place).astype(np.float32)
            (scale,) = np.frombuffer(content, np.float32, 1, place + elements)
            # All but the embeddings are stored as their transpose, which is our layout.
            layout = shape if name == "Wemb" else shape[::-1]
            arrays[name] = (rounded / scale).reshape(layout)
        place += size
    return arrays


def pieces_to_keep(model: bytes, texts: list[Path], size: int) -> list[int]:
    """The ids of `size` pieces: every character, and what is frequent on the web or in the texts.

    The teacher's vocabulary has the words of the web, by how common they are; a text has the words
    of its kind. A word whose piece is dropped is spelled in pieces that the encoder hardly knows.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(token) for token in range(processor.get_piece_size())]
    by_teacher = sorted(range(len(pieces)), key=processor.get_score, reverse=True)
    zipf = {token: 1 / (rank + 10) for rank, token in enumerate(by_teacher)}
    total = sum(zipf.values())
    share = defaultdict(float, {token: each / total for token, each in zipf.items()})
    for path in texts:
        lines = path.read_text(encoding="utf-8").splitlines()
        counts: Counter[int] = Counter()
        for ids in processor.encode(lines):
            counts.update(ids)
        for token, count in counts.items():  # each file counts the same, all as much as the web
            share[token] += count / counts.total() / len(texts)
    wanted = set(CHARACTERS)
    always = [i for i, piece in enumerate(pieces) if piece.removeprefix(SPACE) in wanted]
    by_share = sorted(share, key=share.__getitem__, reverse=True)
    usable = [
        token
        for token in dict.fromkeys([pieces.index(SPACE), *always, *by_share])
        if token not in (END, UNKNOWN) and sum(map(str.isdigit, pieces[token])) < 2
    ]
    return sorted(usable[:size])


def new_vocabulary(model: bytes, kept: list[int], path: Path) -> tuple[Vocabulary, list[int]]:
    """The smaller vocabulary, and for each of its pieces the id that it had, or `UNKNOWN`."""
    given = sentencepiece_model_pb2.ModelProto.FromString(model)
    made = sentencepiece_model_pb2.ModelProto.FromString(model)
    del made.pieces[:]
    kind = sentencepiece_model_pb2.ModelProto.SentencePiece
    origins: list[int] = []

    def add(piece: str, score: float, of_kind: int, origin: int) -> None:
        made.pieces.add(piece=piece, score=score, type=of_kind)
        origins.append(origin)

    add("<pad>", 0.0, kind.CONTROL, UNKNOWN)
    add("<unk>", 0.0, kind.UNKNOWN, UNKNOWN)
    add("<s>", 0.0, kind.CONTROL, UNKNOWN)
    add("</s>", 0.0, kind.CONTROL, END)
    for byte in range(256):
        add(f"<0x{byte:02X}>", 0.0, kind.BYTE, UNKNOWN)
    for token in kept:
        add(given.pieces[token].piece, given.pieces[token].score, kind.NORMAL, token)
    there = {given.pieces[token].piece for token in kept}
    rarest = min(given.pieces[token].score for token in kept)
    for character in CHARACTERS:
        if character not in there:
            add(character, rarest, kind.NORMAL, UNKNOWN)
    made.trainer_spec.vocab_size = len(made.pieces)
    made.trainer_spec.byte_fallback = True
    special = SpecialTokens()
    made.trainer_spec.pad_id, made.trainer_spec.unk_id = special.pad, special.unknown
    made.trainer_spec.bos_id, made.trainer_spec.eos_id = special.start, special.end
    made.trainer_spec.pad_piece, made.trainer_spec.bos_piece = "<pad>", "<s>"
    return Vocabulary(path, made.SerializeToString(), special), origins


def network_weights(
    given: dict[str, Array], network: Network, origins: list[int]
) -> dict[str, Array]:
    """Our tensors, by name."""
    draw = np.random.default_rng(1)
    weights: dict[str, Array] = {}

    def projection(
        to: Projection, matrices: Sequence[AnyArray], biases: Sequence[AnyArray]
    ) -> None:
        weights[to.weight.name] = np.concatenate(matrices).astype(np.float32)
        weights[to.bias.name] = np.concatenate(biases).astype(np.float32)

    def named(to: Projection, prefix: str, *letters: str) -> None:
        matrices = [given[f"{prefix}_W{letter}"] for letter in letters]
        projection(to, matrices, [given[f"{prefix}_b{letter}"][0] for letter in letters])

    def norm(to: Norm, prefix: str) -> None:
        weights[to.gain.name] = given[f"{prefix}_ln_scale"][0]
        weights[to.shift.name] = given[f"{prefix}_ln_bias"][0]

    def feed_forward(layer: EncoderLayer | DecoderLayer, prefix: str) -> None:
        named(layer.feed_forward.inner, prefix, "1")
        named(layer.feed_forward.outer, prefix, "2")
        norm(layer.feed_forward_norm, f"{prefix}_ffn")

    embedding = given["Wemb"][origins]
    bias = given["decoder_ff_logit_out_b"][0][origins]
    new = np.array(origins) == UNKNOWN
    # As far apart as words are: then a byte can be copied like any other piece.
    embedding[new] = draw.normal(0, given["Wemb"].std(), (int(new.sum()), embedding.shape[1]))
    bias[new] = bias[~new].mean()
    special = SpecialTokens()
    embedding[[special.pad, special.start]] = 0.0  # Marian begins with a vector of zeros
    weights[network.source_embedding.weight.name] = embedding.astype(np.float32)
    assert network.output_bias
    weights[network.output_bias.name] = bias

    for number, encoder_layer in enumerate(network.encoder.layers, 1):
        prefix = f"encoder_l{number}_self"
        named(encoder_layer.self_attention.query_key_value, prefix, "q", "k", "v")
        named(encoder_layer.self_attention.output, prefix, "o")
        norm(encoder_layer.self_attention_norm, f"{prefix}_Wo")
        feed_forward(encoder_layer, f"encoder_l{number}_ffn")
    for number, layer in enumerate(network.decoder.layers, 1):
        unit = given[f"decoder_l{number}_rnn_W"]
        width = len(unit)
        asks = [draw.normal(0, width**-0.5, unit.shape) for _ in ("query", "key")]
        projection(layer.self_attention.query_key_value, [*asks, unit], [np.zeros(3 * width)])
        projection(layer.self_attention.output, [np.eye(width)], [np.zeros(width)])
        norm(layer.self_attention_norm, f"decoder_l{number}_rnn_ffn")
        prefix = f"decoder_l{number}_context"
        named(layer.cross_attention.query, prefix, "q")
        named(layer.cross_attention.key_value, prefix, "k", "v")
        named(layer.cross_attention.output, prefix, "o")
        norm(layer.cross_attention_norm, f"{prefix}_Wo")
        feed_forward(layer, f"decoder_l{number}_ffn")
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True, metavar="DIR")
    parser.add_argument("--text", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--pieces", type=int, default=19700, help="of the teacher's 32,000")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    (weight_file,) = options.teacher.glob("model.*.bin")
    (vocabulary_file,) = options.teacher.glob("vocab.*.spm")
    given = read_marian(weight_file)
    spelled = vocabulary_file.read_bytes()
    kept = pieces_to_keep(spelled, options.text, options.pieces)
    vocabulary, origins = new_vocabulary(spelled, kept, options.output / VOCABULARY)
    layers = {name.split("_")[1] for name in given if name.startswith("encoder_l")}
    decoder_layers = {name.split("_")[1] for name in given if name.startswith("decoder_l")}
    config = ModelConfig(
        vocabulary_size=vocabulary.size,
        encoder_layers=len(layers),
        decoder_layers=len(decoder_layers),
        width=given["Wemb"].shape[1],
        heads=8,
        feed_forward=len(given["encoder_l1_ffn_W1"]),
        norm="post",
        output_bias=True,
        sinusoid="tensor2tensor",
    )
    order = GenerationOrder()
    description = Description(
        order=order,
        model=config,
        source_language="en",
        target_language="pt",
        provenance={"begun_with": {weight_file.name: file_digest(weight_file)}},
    )
    weights = network_weights(given, Network.of(config, order), origins)
    vocabularies = Vocabularies(vocabulary, vocabulary)
    ConvertedModel(description, weights, vocabularies).write(options.output)
    print(f"{options.output}: {vocabulary.size:,} pieces, {origins.count(UNKNOWN)} of them new")


if __name__ == "__main__":
    main()
