"""Everything a run starts from: its corpora, its model, and where both come from."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bothends import __version__
from bothends.data.shards import MANIFEST, TRAIN, VALID, Lengths, PreparedCorpus
from bothends.engines.torch import rounded_model
from bothends.errors import BothendsError
from bothends.model.bundled import find_model
from bothends.model.config import ModelConfig
from bothends.model.directory import WEIGHTS, Description, read_description
from bothends.model.graph_files import missing_graphs
from bothends.model.hub import shown
from bothends.model.lengths import LengthStatistics
from bothends.model.spec import tensors
from bothends.model.torch.checkpoint import save_model, transfer_weights
from bothends.model.torch.transformer import Transformer
from bothends.provenance import source_commit
from bothends.text.vocabulary import Vocabularies
from bothends.training.batches import WINDOW, BatchStream, Mixture
from bothends.training.recipe import Recipe

#: In the provenance: the commit of a model on the Hub that the recipe's `init` names.
BEGAN_WITH = "began_with"


@dataclass(frozen=True)
class Setup:
    """The corpora, vocabularies and shapes that a recipe names."""

    corpora: list[PreparedCorpus]
    vocabularies: Vocabularies
    stream: BatchStream
    description: Description

    @classmethod
    def of(cls, recipe: Recipe) -> Setup:
        """Open the corpora and describe the model."""
        settings = recipe.data.prepared
        corpora = [PreparedCorpus.open(corpus.path) for corpus in settings]
        vocabularies = corpora[0].vocabularies()
        for corpus in corpora[1:]:
            _check_same_vocabulary(vocabularies, corpus.vocabularies(), corpus.directory)
        mixture = Mixture(
            [partial(corpus.split, TRAIN) for corpus in corpora],
            [corpus.repeat for corpus in settings],
        )
        stream = BatchStream(mixture, recipe.batch, recipe.seed)
        init, commit = _begins_with(recipe)
        if not vocabularies.same_ids and recipe.model.settings(init)["share_embeddings"]:
            raise BothendsError(
                f"{corpora[0].directory}: source and target have vocabularies of their own, "
                "so the recipe needs model.share_embeddings: false"
            )
        description = Description(
            order=recipe.order,
            model=recipe.model.config(
                vocabularies.source.size,
                vocabularies.target.size,
                vocabularies.target.special,
                init,
            ),
            task=recipe.data.task,
            source_language=recipe.data.source_language,
            target_language=recipe.data.target_language,
            lengths=_lengths(recipe, corpora),
            provenance=_provenance(recipe, corpora, commit),
        )
        return cls(corpora, vocabularies, stream, description)

    @property
    def validation_corpus(self) -> PreparedCorpus:
        """The first corpus that has validation pairs."""
        with_pairs = [corpus for corpus in self.corpora if VALID in corpus.splits]
        return (with_pairs or self.corpora)[0]  # none: opening its split says what to do

    def new_model(self, seed: int) -> Transformer:
        """A model with random weights."""
        torch.manual_seed(seed_of(seed, 0))
        return Transformer(self.description.model, self.description.order)

    def begin_with(self, init: Path, model: Transformer) -> str:
        """Give a new model the weights of a trained one where they fit; what was done, in words."""
        init = find_model(self.description.provenance.get(BEGAN_WITH, init), weights=True)
        _check_same_vocabulary(self.vocabularies, Vocabularies.load(init), init)
        rounded = not (init / WEIGHTS).exists() and not missing_graphs(init)
        transfer = transfer_weights(rounded_model(init) if rounded else init, model)
        kind = " as they were rounded" if rounded else ""
        count = f"{len(transfer.taken)} of {len(model.state_dict())}"
        new = f"; new: {', '.join(transfer.initialised)}" if transfer.initialised else ""
        return f"begins with {shown(init)}, {count} tensors{kind}{new}"

    def freeze(self, parts: Sequence[str], model: Transformer) -> None:
        """Leave the weights of these parts as they are.

        Adam moves a rarely used embedding as fast as any other: a short training from a good model
        may spoil its rare words.
        """
        network = model.network
        frozen = {
            "embeddings": (
                network.source_embedding,
                network.target_embedding,
                network.output_weight,
                network.output_bias,
            ),
            "encoder": (network.encoder, network.source_positions),
        }
        names = {tensor.name for part in parts for tensor in tensors(frozen[part])}
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name not in names)

    def write_model(self, directory: Path, model: Transformer, **provenance: Any) -> None:
        """Write a model directory."""
        directory.mkdir(parents=True)
        self.vocabularies.save(directory)
        known = {**self.description.provenance, **provenance}
        save_model(directory, model, replace(self.description, provenance=known))


def seed_of(seed: int, *place: int) -> int:
    """A seed for one place of a run, such as micro-batch 2 of update 700."""
    return int(np.random.SeedSequence((seed, *place)).generate_state(1, np.uint64)[0] >> 1)


def _begins_with(recipe: Recipe) -> tuple[ModelConfig | None, str | None]:
    """The shape of the model that training begins with, if there is one, and its commit on the Hub.

    A run that goes on does not need that model any more: its own checkpoints have the same shape.
    """
    if recipe.init is None:
        return None, None
    checkpoints = sorted(Path(recipe.run).glob("checkpoints/update-*")) if recipe.run else []
    if checkpoints:
        description = read_description(checkpoints[-1])
        return description.model, description.provenance.get(BEGAN_WITH)
    description = read_description(find_model(recipe.init, weights=True))
    return description.model, description.provenance.get("downloaded_from")


def _check_same_vocabulary(ours: Vocabularies, theirs: Vocabularies, place: Path) -> None:
    if (ours.source.model, ours.target.model) != (theirs.source.model, theirs.target.model):
        raise BothendsError(
            f"{place}: its vocabulary differs from the first corpus's; prepare the corpora with "
            "the same one (bothends prepare --vocabulary)"
        )


def _lengths(recipe: Recipe, corpora: list[PreparedCorpus]) -> LengthStatistics | None:
    """Of the pairs that are trained on, a window at a time: a corpus may exceed the memory."""

    def parts() -> Iterator[tuple[Lengths, Lengths, int]]:
        batch = recipe.batch
        for setting, corpus in zip(recipe.data.prepared, corpora, strict=True):
            pairs = corpus.split(TRAIN)
            for start in range(0, len(pairs), WINDOW):
                source = pairs.source_lengths[start : start + WINDOW]
                target = pairs.target_lengths[start : start + WINDOW]
                kept = (source <= batch.max_source_length) & (target <= batch.max_target_length)
                yield source[kept], target[kept], setting.repeat

    return LengthStatistics.over(parts())


def _provenance(
    recipe: Recipe, corpora: list[PreparedCorpus], commit: str | None
) -> dict[str, Any]:
    manifests = {
        str(setting.path): hashlib.sha256((corpus.directory / MANIFEST).read_bytes()).hexdigest()
        for setting, corpus in zip(recipe.data.prepared, corpora, strict=True)
    }
    return {
        "recipe": recipe.dump(),
        **({BEGAN_WITH: commit} if commit else {}),
        "data": {path: {"manifest_sha256": digest} for path, digest in manifests.items()},
        "versions": {
            "bothends": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "commit": source_commit(),
    }
