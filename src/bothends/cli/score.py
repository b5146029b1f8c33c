"""`bothends score`: the log probability that a model gives to translations made elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bothends.cli.options import (
    DEFAULTS,
    DeviceOption,
    EngineOption,
    InvalidOption,
    JsonOption,
    ModelOption,
    PrecisionOption,
    ThreadsOption,
)
from bothends.translating.translation import MAX_SCORED_LENGTH

if TYPE_CHECKING:
    from bothends.search.scoring import ForcedScore
    from bothends.text.lines import LineReader


def score(
    source: Annotated[Path, typer.Option(metavar="FILE", help="Source text, line by line.")],
    target: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, line by line.")],
    model: ModelOption = None,
    json_: JsonOption = False,
    max_length: Annotated[
        int,
        typer.Option(min=1, help="Most tokens of a line on either side; a longer one is an error."),
    ] = MAX_SCORED_LENGTH,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of a batch on either side, padding included.")
    ] = DEFAULTS.batch_tokens,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    invalid: InvalidOption = "error",
) -> None:
    """Print the log probability of each target line.

    The perplexity of all lines goes to stderr.
    """
    import numpy as np

    from bothends.text.lines import LineReader
    from bothends.translating.load_options import LoadOptions

    pairs = _pairs(LineReader([source], invalid), LineReader([target], invalid), source, target)
    translator = LoadOptions(engine, precision, threads, device, shortlist=False).load(model)
    count, tokens, logprob = 0, 0, 0.0
    scores = translator.stream_scores(pairs, max_length=max_length, batch_tokens=batch_tokens)
    with closing(scores):
        for each in scores:
            print(json.dumps(_record(each)) if json_ else f"{each.logprob:.6f}")
            count, tokens, logprob = count + 1, tokens + each.length, logprob + each.logprob
    summary = f"{count:,} {'pair' if count == 1 else 'pairs'}, {tokens:,} tokens"
    if count:
        # As `corpus_perplexity`, without holding all scores: each pair has an end symbol too.
        summary += f", perplexity {np.exp(-logprob / (tokens + count)):,.4f}"
    print(summary, file=sys.stderr)


def _record(score: ForcedScore) -> dict[str, Any]:
    return {
        "logprob": score.logprob,
        "length": score.length,
        "perplexity": score.perplexity,
        "token_logprobs": score.token_logprobs,
        "end_logprob": score.end_logprob,
    }


def _pairs(
    sources: LineReader, targets: LineReader, source: Path, target: Path
) -> Iterator[tuple[str, str]]:
    """Lines side by side; an error if one file has more of them."""
    from bothends.errors import BothendsError

    # None says that input is slow; a score can wait for it.
    left = (line for line in sources if line is not None)
    right = (line for line in targets if line is not None)
    count = 0
    for line in left:
        other = next(right, None)
        if other is None:
            lines = count + 1 + sum(1 for _ in left)
            raise BothendsError(
                f"{source} has {lines} lines, but {target} has {count}: expected equally many"
            )
        yield line, other
        count += 1
    if rest := sum(1 for _ in right):
        raise BothendsError(
            f"{source} has {count} lines, but {target} has {count + rest}: expected equally many"
        )
