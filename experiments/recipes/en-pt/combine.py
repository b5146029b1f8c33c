"""Arithmetic on the weights of models of one shape.

    python combine.py mean FIRST SECOND --output MODEL
    python combine.py move MODEL OLD NEW --output MOVED

Two stages of one training are close enough for it. Their mean keeps what the first knew before the
second changed it. `move` adds to a model what a further stage has changed in another: a model that
went out from OLD gets what NEW has learned since.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from bothends.convert.result import ConvertedModel
from bothends.model.directory import read_description
from bothends.model.weights import in_float32, read_weights
from bothends.text.vocabulary import Vocabularies

#: What each model is multiplied by.
FACTORS = {"mean": (0.5, 0.5), "move": (1.0, -1.0, 1.0)}
#: Whose order, vocabulary and settings the result has.
LIKE = {"mean": 1, "move": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=FACTORS)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    factors = FACTORS[options.what]
    if len(options.models) != len(factors):
        parser.error(f"{options.what} takes {len(factors)} models")
    descriptions = [read_description(path) for path in options.models]
    total: dict[str, np.ndarray] = {}
    for factor, path, description in zip(factors, options.models, descriptions, strict=True):
        for name, array in in_float32(read_weights(path, description)).items():
            total[name] = total.get(name, np.float32(0)) + np.float32(factor) * array
    like = LIKE[options.what]
    provenance = {
        **descriptions[like].provenance,
        options.what: [description.provenance for description in descriptions],
    }
    description = replace(descriptions[like], provenance=provenance)
    ConvertedModel(description, total, Vocabularies.load(options.models[like])).write(
        options.output
    )


if __name__ == "__main__":
    main()
