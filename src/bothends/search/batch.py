"""Searching one batch with whatever engine there is.

An engine that has a search of its own runs all of it in one call; any other is stepped by
`beam_search`, which is also what the compiled search is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bothends.engines.protocol import Engine, Searched, SearchRequest, WholeSearch
from bothends.order import GenerationOrder, IntArray
from bothends.search.beam import (
    Hypothesis,
    beam_search,
    best_of_pools,
    make_hypothesis,
    sentence_limits,
)
from bothends.search.options import SearchOptions
from bothends.text.vocabulary import SpecialTokens


def search_batch(
    engine: Engine[Any],
    order: GenerationOrder,
    special: SpecialTokens,
    source: IntArray,
    options: SearchOptions,
    max_lengths: IntArray | None = None,
    allowed: Sequence[IntArray] | None = None,
) -> list[list[Hypothesis]]:
    """What `beam_search` finds with the same arguments.

    `allowed` are the target ids that each sentence may use; an engine without a search of its own
    takes no notice of them.
    """
    if not isinstance(engine, WholeSearch):
        return beam_search(engine, order, special, source, options, max_lengths)
    if not len(source):
        return []
    limits = sentence_limits(source, special, options, max_lengths)
    request = SearchRequest(
        source, order, special, options.beam, options.min_length, limits, allowed
    )
    return rank_searched(engine.search(request), order, options)


def rank_searched(
    searched: Searched, order: GenerationOrder, options: SearchOptions
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence, best first, in text order."""
    pools = [[make_hypothesis(*found, order, options) for found in pool] for pool in searched.pools]
    return best_of_pools(pools, options)
