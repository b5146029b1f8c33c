"""Text in, text out: vocabulary, engine and search behind one object.

    translator = Translator.load("model-directory")
    for translation in translator.translate(["A line.", "Another one."]):
        print(translation.text, translation.score)

What a line is translated to depends on the line, the model and the options, and but for rounding on
nothing else: not on the other lines, nor on the number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bothends.engines.protocol import Engine, pad_sources
from bothends.engines.registry import EngineName, Precision, load_engine
from bothends.errors import BothendsError, UsageError
from bothends.model.bundled import find_model
from bothends.model.directory import Description, read_description
from bothends.order import IntArray
from bothends.processes import available_cores
from bothends.search.beam import Hypothesis, beam_search
from bothends.search.options import check_whole_number
from bothends.search.scoring import ForcedScore, force_scores
from bothends.streaming import Place, in_order, split_into_windows, submit_in_batches
from bothends.text.repeats import remove_repeated_words
from bothends.text.vocabulary import Vocabularies
from bothends.translation import BATCH_TOKENS, EMPTY, Translation, TranslationOptions

#: Tokens of a source or target that is scored. All its slots attend to each other at once, so that
#: memory grows with the square: 2,048 take some hundred megabytes.
MAX_SCORED_LENGTH = 2048


class Translator:
    """A loaded model. Thread-safe: any number of threads may call any of its methods at once.

    All calls share one pool of `threads` workers, each of which translates one batch on one core;
    the model, once loaded, does not change. A single line takes one core, several lines take more.
    """

    def __init__(
        self,
        engine: Engine[Any],
        description: Description,
        vocabularies: Vocabularies,
        threads: int = 1,
    ) -> None:
        """See `load`; this is for an engine of your own."""
        self.description = description
        self.vocabularies = vocabularies
        self.threads = threads
        self._engine = engine
        # Its threads start with the first batches and end with the translator.
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bothends")

    @classmethod
    def load(
        cls,
        directory: Path | str | None = None,
        *,
        precision: Precision | None = None,
        threads: int | None = None,
        engine: EngineName = "onnx",
    ) -> Translator:
        """Load the model in `directory`, or the one of that name in the box, or the default one.

        `precision` only checks that the model was exported with it. `threads` are all cores that
        the process may use, unless you say otherwise. The `torch` engine needs PyTorch and the
        model's weights: it is the reference, and the one for a GPU.
        """
        directory = find_model(directory)
        description = read_description(directory)
        vocabularies = Vocabularies.load(directory, description.model.special)
        for side, vocabulary, words in (
            ("source", vocabularies.source, description.model.vocabulary_size),
            ("target", vocabularies.target, description.model.target_size),
        ):
            if vocabulary.size != words:
                raise BothendsError(
                    f"{vocabulary.path}: {vocabulary.size} entries, but the model has {words} "
                    f"{side} words: it is the vocabulary of another model"
                )
        if threads is not None and threads < 1:
            raise UsageError(f"threads must be at least 1, but is {threads}")
        network = load_engine(engine, directory, precision, threads)
        # PyTorch spreads a single batch over cores, or over a GPU.
        workers = 1 if engine == "torch" else threads or available_cores()
        return cls(network, description, vocabularies, workers)

    def translate(
        self,
        lines: Sequence[str],
        *,
        beam: int = 4,
        length_penalty: float = 0.6,
        normalisation: Literal["google", "mean"] = "google",
        n_best: int = 1,
        min_length: int = 0,
        max_length: int | None = None,
        deduplicate: bool = False,
        max_source_length: int = 512,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Translation]:
        """Translate lines; one `Translation` for each, in order. See `TranslationOptions`.

        An empty line, or one of nothing but spaces, has an empty translation.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines: translate([line])")
        options = TranslationOptions(
            beam=beam,
            length_penalty=length_penalty,
            normalisation=normalisation,
            n_best=n_best,
            min_length=min_length,
            max_length=max_length,
            deduplicate=deduplicate,
            max_source_length=max_source_length,
            batch_tokens=batch_tokens,
        )
        return list(in_order([lines] if len(lines) else [], partial(self._submit_lines, options)))

    def stream(
        self, lines: Iterable[str | None], options: TranslationOptions | None = None
    ) -> Generator[Translation, None, None]:
        """Translate lines as they come, in memory that does not grow with their number.

        Reads ahead: at first a few dozen lines, later up to some thousand. Where the input may make
        the translator wait, let it yield `None` first: what was read by then is translated and
        yielded before the next line is asked for. Who stops early should close the generator.
        """
        if isinstance(lines, str):
            raise TypeError("stream takes an iterable of lines: stream([line])")
        submit = partial(self._submit_lines, options or TranslationOptions())
        return in_order(split_into_windows(lines), submit)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str | Sequence[int]],
        *,
        max_length: int = MAX_SCORED_LENGTH,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[ForcedScore]:
        """The log probability of each target, given its source.

        A target is text, or the `tokens` of a `Translation`: text can be cut into tokens in more
        than one way, and is scored as the vocabulary cuts it. A source or target of more than
        `max_length` tokens is an error, because the score of a part of it would mean little.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise TypeError("score takes lists of lines: score([source], [target])")
        check_whole_number("batch_tokens", batch_tokens, 1)
        if len(sources) != len(targets):
            raise UsageError(f"{len(sources)} sources, but {len(targets)} targets: expected pairs")
        pairs = list(enumerate(zip(sources, targets, strict=True), start=1))
        submit = partial(self._submit_pairs, max_length, batch_tokens)
        return list(in_order([pairs] if pairs else [], submit))

    def stream_scores(
        self,
        pairs: Iterable[tuple[str, str | Sequence[int]]],
        *,
        max_length: int = MAX_SCORED_LENGTH,
        batch_tokens: int = BATCH_TOKENS,
    ) -> Generator[ForcedScore, None, None]:
        """As `score`, pair by pair, in memory that does not grow with their number."""
        check_whole_number("batch_tokens", batch_tokens, 1)
        submit = partial(self._submit_pairs, max_length, batch_tokens)
        return in_order(split_into_windows(enumerate(pairs, start=1)), submit)

    def _submit_lines(
        self, options: TranslationOptions, lines: Sequence[str]
    ) -> list[Place[Translation]]:
        encoded = self.vocabularies.source.encode(lines, self.threads)
        # Lines that are the same to the model are translated once: lists and logs are full of them.
        numbers: dict[tuple[int, ...], int] = {}
        work = {
            index: numbers.setdefault(tuple(encoded[index]), len(numbers))
            for index, line in enumerate(lines)
            # What is left of a line in the vocabulary may be nothing even where it has characters.
            if line.strip() and encoded[index]
        }
        sources = list(numbers)

        def run(batch: list[int]) -> list[Translation]:
            return self._translate_batch(options, [sources[index] for index in batch])

        lengths = [min(len(source), options.max_source_length) + 1 for source in sources]
        submitted = submit_in_batches(self._pool, self.threads, lengths, options.batch_tokens, run)
        nothing: Future[list[Translation]] = Future()
        nothing.set_result([EMPTY])
        places = [Place(nothing, 0)] * len(lines)
        for index, number in work.items():
            places[index] = submitted[number]
        return places

    def _translate_batch(
        self, options: TranslationOptions, sources: Sequence[Sequence[int]]
    ) -> list[Translation]:
        begin = time.perf_counter()
        limit = options.max_source_length
        batch = self._padded([source[:limit] for source in sources])
        with _enough_memory(batch.size, "--batch-tokens, --beam or --max-source-length"):
            found = beam_search(
                self._engine,
                self.description.order,
                self.description.model.special,
                batch,
                options.search,
                np.array([options.longest(min(len(source), limit)) for source in sources]),
            )
        if options.deduplicate:
            found = list(map(self._without_repeats, found))
        seconds = time.perf_counter() - begin
        texts = iter(
            self.vocabularies.target.decode(
                [hypothesis.tokens for hypotheses in found for hypothesis in hypotheses]
            )
        )
        translations = []
        for source, hypotheses in zip(sources, found, strict=True):
            best, *others = (
                self._translation(hypothesis, next(texts), len(source) > limit, seconds)
                for hypothesis in hypotheses
            )
            translations.append(replace(best, alternatives=tuple(others)))
        return translations

    def _without_repeats(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The hypotheses without repeated words; the first of those that are now the same."""
        kept: dict[tuple[int, ...], Hypothesis] = {}
        for hypothesis in hypotheses:
            pieces = self.vocabularies.target.pieces(hypothesis.tokens)
            tokens = remove_repeated_words(hypothesis.tokens, pieces)
            kept.setdefault(tuple(tokens), replace(hypothesis, tokens=tokens))
        return list(kept.values())

    def _translation(
        self, hypothesis: Hypothesis, text: str, truncated: bool, seconds: float
    ) -> Translation:
        return Translation(
            text=text,
            score=hypothesis.score,
            logprob=hypothesis.logprob,
            tokens=tuple(hypothesis.tokens),
            pieces=tuple(self.vocabularies.target.pieces(hypothesis.tokens)),
            steps=hypothesis.steps,
            finished=hypothesis.finished,
            truncated=truncated,
            time=seconds,
        )

    def _submit_pairs(
        self,
        max_length: int,
        batch_tokens: int,
        pairs: Sequence[tuple[int, tuple[str, str | Sequence[int]]]],
    ) -> list[Place[ForcedScore]]:
        sources = self.vocabularies.source.encode([pair[0] for _, pair in pairs], self.threads)
        texts = [pair[1] if isinstance(pair[1], str) else "" for _, pair in pairs]
        targets: list[Sequence[int]] = []
        encoded = self.vocabularies.target.encode(texts, self.threads)
        words = range(self.description.model.target_size)
        for (number, (_, target)), source, of_text in zip(pairs, sources, encoded, strict=True):
            targets.append(of_text if isinstance(target, str) else target)
            longest = max(len(source), len(targets[-1]))
            if longest > max_length:
                raise BothendsError(
                    f"pair {number}: {longest} tokens, but at most {max_length} are scored; "
                    "leave it out, or allow a larger maximum length"
                )
            if not all(token in words for token in targets[-1]):
                raise UsageError(f"pair {number}: a token is outside the vocabulary's {len(words)}")

        lengths = [max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)]

        def run(batch: list[int]) -> list[ForcedScore]:
            tokens = len(batch) * max(lengths[index] for index in batch)
            with _enough_memory(tokens, "--batch-tokens or --max-length"):
                return force_scores(
                    self._engine,
                    self.description.order,
                    self.description.model.special,
                    self._padded([sources[index] for index in batch]),
                    [targets[index] for index in batch],
                )

        return submit_in_batches(self._pool, self.threads, lengths, batch_tokens, run)

    def _padded(self, sources: Sequence[Sequence[int]]) -> IntArray:
        """Source sentences as an engine takes them, each with its end symbol."""
        special = self.description.model.special
        return pad_sources([[*source, special.end] for source in sources], special.pad)


@contextmanager
def _enough_memory(tokens: int, options: str) -> Iterator[None]:
    """Turns a lack of memory for a batch into an error that names the options to lower."""
    try:
        yield
    except MemoryError:
        raise BothendsError(
            f"not enough memory for a batch of {tokens:,} tokens; lower {options}"
        ) from None
