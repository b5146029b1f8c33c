"""Validate a model on held-out pairs: loss, perplexity, and the task's metric with real search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bothends.data.shards import PreparedCorpus, TokenPairs
from bothends.engines.torch import TorchEngine
from bothends.metrics import sums as metrics
from bothends.model.torch.transformer import Transformer
from bothends.search.generator import Generator
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import TextVocabulary
from bothends.training.batches import collate, cut
from bothends.training.distributed import Processes
from bothends.training.recipe import Recipe, Validation
from bothends.training.step import Tensors, summed_loss


@dataclass(frozen=True)
class ValidationScore:
    """The task's metric, higher is better, and how it was computed."""

    value: float
    signature: str


@dataclass(frozen=True)
class ValidationResult:
    """The result of a validation."""

    #: nats per target token, without label smoothing
    loss: float
    score: ValidationScore | None

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    @property
    def value(self) -> float:
        """The value that selects the best checkpoint: higher is better."""
        return -self.loss if self.score is None else self.score.value


class Validator:
    """The validation pairs of a run and how to judge a model on them."""

    def __init__(self, corpus: PreparedCorpus, recipe: Recipe, processes: Processes) -> None:
        self.settings: Validation = recipe.validation
        # Here, so that a missing package or a wrong setting shows at once.
        self.metric = _metric(recipe.validation)
        self.search = SearchOptions(
            beam=recipe.validation.beam, length_penalty=recipe.validation.length_penalty
        )
        self.micro_tokens = recipe.batch.micro_tokens
        self.processes = processes
        self.pairs: TokenPairs = corpus.split("valid")
        self.vocabulary: TextVocabulary = corpus.vocabularies().target
        self.references: list[str] = corpus.valid_text()[1]

    def validate(self, model: Transformer) -> ValidationResult:
        """Loss of all pairs, and the metric of as many as the recipe says."""
        training = model.training
        model.eval()
        loss = self._loss(model)
        score = None
        if self.metric is not None:
            wanted = len(self.pairs) if self.settings.sentences is None else self.settings.sentences
            texts, references = self._translate(model, range(min(wanted, len(self.pairs))))
            score = ValidationScore(self.metric.of(texts, references), self.metric.signature)
        model.train(training)
        return ValidationResult(loss, score)

    @torch.no_grad()
    def _loss(self, model: Transformer) -> float:
        lengths = np.maximum(self.pairs.source_lengths, self.pairs.target_lengths) + 1
        by_length = np.argsort(lengths, kind="stable")
        stretches = list(cut(lengths[by_length], self.micro_tokens))
        total = tokens = 0.0
        for number in self.processes.share(range(len(stretches))):
            start, end = stretches[number]
            pairs = [self.pairs[int(i)] for i in by_length[start:end]]
            arrays = collate(pairs, model.order, model.config.special, model.config.frame)
            tensors = Tensors.of(arrays, model.config.special, self.processes.device)
            total += float(summed_loss(model, tensors, smoothing=0.0))
            tokens += tensors.count
        total, tokens = self.processes.sum(total, tokens)
        return total / max(1.0, tokens)

    def _translate(
        self, model: Transformer, sentences: Sequence[int]
    ) -> tuple[list[str], list[str]]:
        """Translations and references; each process translates its share."""
        own = sorted(
            self.processes.share(sentences), key=lambda i: int(self.pairs.source_lengths[i])
        )
        found: dict[int, list[int]] = {}
        widths = np.array([int(self.pairs.source_lengths[i]) + 1 for i in own])
        for start, end in cut(widths, max(1024, int(widths.max(initial=1)))):
            batch = own[start:end]
            found.update(zip(batch, self._search(model, batch), strict=True))
        everywhere: dict[int, list[int]] = {}
        gathered = self.processes.gather([found[i] for i in sorted(found)])
        for rank, sequences in enumerate(gathered):
            everywhere.update(zip(sentences[rank :: self.processes.size], sequences, strict=True))
        texts = self.vocabulary.decode([everywhere[i] for i in sentences])
        return texts, [self.references[i] for i in sentences]

    def _search(self, model: Transformer, batch: Sequence[int]) -> list[list[int]]:
        engine = TorchEngine(model, self.processes.device)
        generator = Generator(engine, model.order, model.config.special, model.config)
        found = generator.search([self.pairs[i][0].tolist() for i in batch], self.search)
        return [hypotheses[0].tokens for hypotheses in found]


def _metric(settings: Validation) -> metrics.Metric | None:
    match settings.metric:
        case "bleu":
            return metrics.bleu(settings.tokenizer)
        case "chrf":
            return metrics.chrf()
        case "rouge":
            return metrics.rouge("L")
        case "exact":
            return metrics.exact()
        case "loss":
            return None
