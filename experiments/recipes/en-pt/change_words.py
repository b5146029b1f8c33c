"""The same model with other words of its teacher's vocabulary.

    python change_words.py MODEL --teacher MODEL_DIRECTORY --text a.en a.pt ... --output CHANGED

The model's embeddings are its teacher's, so that a piece which `begin.py` left out can come in with
the teacher's own values, and hardly has to be learned. Pieces that the model has keep theirs. A
model that has only its int8 graphs, as in the package, will do.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from begin import UNKNOWN, Array, new_vocabulary, pieces_to_keep, read_marian

from bothends.convert.result import ConvertedModel
from bothends.engines.onnx.rounded import read_rounded_weights
from bothends.model.directory import WEIGHTS, read_description
from bothends.model.spec import Network
from bothends.model.weights import Weights, in_float32, read_weights
from bothends.text.vocabulary import VOCABULARY, Vocabularies


def with_rows(
    own: Array, own_rows: list[int | None], theirs: Array, their_rows: list[int]
) -> Array:
    """The model's rows where it has them, else the teacher's, moved as the common ones were."""
    common = [
        (a, b) for a, b in zip(own_rows, their_rows, strict=True) if a is not None and b != UNKNOWN
    ]
    shift = np.mean([own[a] - theirs[b] for a, b in common], axis=0)
    rows = [
        theirs[b] + shift if a is None else own[a]
        for a, b in zip(own_rows, their_rows, strict=True)
    ]
    return np.array(rows, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--teacher", type=Path, required=True, metavar="DIR")
    parser.add_argument("--text", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--pieces", type=int, default=19_700, help="of the teacher's 32,000")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    (weight_file,) = options.teacher.glob("model.*.bin")
    (vocabulary_file,) = options.teacher.glob("vocab.*.spm")
    given = read_marian(weight_file)
    spelled = vocabulary_file.read_bytes()
    kept = pieces_to_keep(spelled, options.text, options.pieces)
    vocabulary, origins = new_vocabulary(spelled, kept, options.output / VOCABULARY)

    description = read_description(options.model)
    old = Vocabularies.load(options.model, description.model.special).target
    places = {piece: token for token, piece in enumerate(old.pieces(range(old.size)))}
    own_rows = [places.get(piece) for piece in vocabulary.pieces(range(vocabulary.size))]
    weights: Weights
    if (options.model / WEIGHTS).exists():
        weights = in_float32(read_weights(options.model, description))
    else:
        weights = read_rounded_weights(options.model, description)
    network = Network.of(description.model, description.order)
    assert network.output_bias
    for name, theirs in (
        (network.source_embedding.weight.name, given["Wemb"]),
        (network.output_bias.name, given["decoder_ff_logit_out_b"][0]),
    ):
        weights[name] = with_rows(weights[name], own_rows, theirs, origins)
    changed = replace(
        description, model=replace(description.model, vocabulary_size=vocabulary.size)
    )
    ConvertedModel(changed, weights, Vocabularies(vocabulary, vocabulary)).write(options.output)
    new = own_rows.count(None)
    print(f"{options.output}: {vocabulary.size:,} pieces, {new:,} of them new")


if __name__ == "__main__":
    main()
