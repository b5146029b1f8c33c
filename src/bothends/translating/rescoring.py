"""A second model that has a say in the ranking: it reads the hypotheses, and writes none.

An order that writes several words at once is quick, and now and then two words of a step do not fit
each other. All hypotheses of its beam, given to a `1x1` model, take that one pass: the sources are
encoded once, and no step waits for another. What both together find most likely is the result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from bothends.errors import UsageError
from bothends.model.directory import Description
from bothends.text.languages import short_code
from bothends.translating.text_model import TextModel, Tokens
from bothends.translating.translation import Translation, TranslationOptions


def check_languages(model: Description, rescorer: Description) -> None:
    """Complain about a model of other languages, as far as both models name theirs."""
    for end in ("source", "target"):
        ours, theirs = (getattr(each, f"{end}_language") for each in (model, rescorer))
        if ours and theirs and short_code(ours) != short_code(theirs):
            raise UsageError(
                f"a model whose {end} language is {theirs!r} cannot rank the translations of one "
                f"whose {end} language is {ours!r}"
            )


@dataclass(frozen=True)
class RescoredModel(TextModel):
    """A text model whose hypotheses are ranked by the mean of its logprob and another model's."""

    rescorer: TextModel = field(kw_only=True)

    @classmethod
    def of(cls, model: TextModel, rescorer: TextModel) -> RescoredModel:
        """The same model, with another one that takes part in the ranking."""
        own = {each.name: getattr(model, each.name) for each in fields(TextModel)}
        return cls(**own, rescorer=rescorer)

    def translate(
        self, sources: Sequence[Tokens], options: TranslationOptions
    ) -> list[Translation]:
        """The translations of encoded lines, as one batch; `score` combines both models."""
        found = super().translate(sources, replace(options, n_best=options.beam))
        begin = time.perf_counter()
        theirs = self._their_logprobs(sources, found, options)
        seconds = time.perf_counter() - begin
        return [
            _rank(translation, logprobs, options, seconds)
            for translation, logprobs in zip(found, theirs, strict=True)
        ]

    def _their_logprobs(
        self,
        sources: Sequence[Tokens],
        found: Sequence[Translation],
        options: TranslationOptions,
    ) -> list[list[float]]:
        """The other model's logprob of each hypothesis of each source."""
        ours, others = self.vocabularies, self.rescorer.vocabularies
        targets: list[list[Sequence[int]]] = [
            [each.tokens for each in translation.hypotheses] for translation in found
        ]
        given: list[Sequence[int]] = list(sources)
        if ours.source.model != others.source.model:
            given = list(others.source.encode(ours.source.decode(sources)))
        if ours.target.model != others.target.model:
            targets = [
                list(others.target.encode([each.text for each in translation.hypotheses]))
                for translation in found
            ]
        longest = self.rescorer.longest_source(options)
        return self.rescorer.score_each([source[:longest] for source in given], targets)


def _rank(
    translation: Translation,
    their_logprobs: Sequence[float],
    options: TranslationOptions,
    seconds: float,
) -> Translation:
    """The hypotheses anew, by what both models say; of equals, the one that was ahead."""
    scored = [
        replace(
            each,
            next_best=(),
            time=each.time + seconds,
            score=options.score((each.logprob + theirs) / 2, len(each.tokens)),
        )
        for each, theirs in zip(translation.hypotheses, their_logprobs, strict=True)
    ]
    best, *others = sorted(scored, key=lambda each: -each.score)[: options.n_best]
    return replace(best, next_best=tuple(others))
