"""The mean of the weights of two models of one shape.

    python mean.py FIRST SECOND --output MODEL

Two stages of one training are close enough for it: the mean keeps what the first knew before the
second changed it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bothends.convert.result import ConvertedModel
from bothends.model.directory import read_description
from bothends.model.weights import in_float32, read_weights
from bothends.text.vocabulary import Vocabularies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs=2, metavar="MODEL")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    first, second = (read_description(path) for path in options.models)
    weights, others = (
        in_float32(read_weights(path, description))
        for path, description in zip(options.models, (first, second), strict=True)
    )
    half = np.float32(0.5)
    mean = {name: half * (array + others[name]) for name, array in weights.items()}
    provenance = {**second.provenance, "mean_with": first.provenance}
    description = second.model_copy(update={"provenance": provenance})
    ConvertedModel(description, mean, Vocabularies.load(options.models[1])).write(options.output)


if __name__ == "__main__":
    main()
