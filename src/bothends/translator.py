"""Text in, text out: vocabulary, engine and search behind one object.

    with Translator.load() as translator:
        print(translator.translate("Where is the station?").text)

The translation of a line depends on the line, the model and the options. Except for rounding, it
does not depend on other lines or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bothends.engines.protocol import Engine
from bothends.engines.registry import EngineName, Precision
from bothends.model.directory import Description
from bothends.model.shortlist import Shortlist
from bothends.search.generator import Generator
from bothends.text.arguments import ONE_DRAFT, STREAM, TEXTS, check_lines, check_text
from bothends.text.vocabulary import Vocabularies
from bothends.translating.line_job import Translating
from bothends.translating.loading import load_model
from bothends.translating.scorer import Scorer
from bothends.translating.streaming import Workers, split_into_windows
from bothends.translating.text_model import TextModel
from bothends.translating.translation import Translation, TranslationOptions

if TYPE_CHECKING:
    from collections.abc import Generator as Stream

    from typing_extensions import Unpack

    from bothends.filling import Filler, Filling
    from bothends.translating.translation import OptionFields


class Translator(Scorer):
    """A loaded model. Thread-safe: any number of threads may call any of its methods at once.

    All calls share one pool of `threads` workers, each of which translates one batch on one core;
    the model, once loaded, does not change. While a single batch is translated, the native engine
    uses the other cores for it, too.

    Translation options are keyword arguments, named as in
    [`TranslationOptions`][bothends.TranslationOptions], or an options object, or both:
    `translate(lines, options, beam=1)` changes one field of `options`.

    Attributes:
        description: What the model's `config.json` says: order, architecture, languages.
        vocabularies: The source and the target vocabulary.
        threads: Batches that are translated at once.
        engine_name: What runs the network: `native`, `onnx` or `torch`.
        shortlist: The words that each sentence may use, or None: all of them.
    """

    def __init__(
        self,
        engine: Engine[Any],
        description: Description,
        vocabularies: Vocabularies,
        threads: int = 1,
        context: Callable[[], AbstractContextManager[None]] = nullcontext,
        engine_name: str = "custom",
        shortlist: Shortlist | None = None,
    ) -> None:
        """See `load`; this is for an engine of your own. Every batch runs inside `context()`."""
        self.description = description
        self.vocabularies = vocabularies
        self.threads = threads
        self.engine_name = engine_name
        self.shortlist = shortlist
        generator = Generator(
            engine, description.order, description.model.special, description.model, shortlist
        )
        self._model = TextModel(generator, vocabularies, context, description.lengths)
        self._workers = Workers(threads)

    @classmethod
    def load(
        cls,
        directory: Path | str | None = None,
        *,
        precision: Precision | None = None,
        threads: int | None = None,
        engine: EngineName | None = None,
        device: str | None = None,
        shortlist: bool = True,
    ) -> Translator:
        """Load a model.

        Args:
            directory: A model directory, the name of a bundled model, or `hf:org/name` or
                `hf:org/name@revision` on the Hugging Face Hub; the default model if None.
            precision: Fail if the model was exported with another precision.
            threads: Cores to use; by default all that the process may use.
            engine: `"native"` runs int8 models, and is their default if it is built; `"onnx"` runs
                every exported model; `"torch"` needs PyTorch and the model's weights.
            device: Where the torch engine computes, such as `"cuda"`; the CPU by default.
            shortlist: Use the model's shortlist, if it has one; False: search all words.

        Raises:
            BothendsError: The directory is missing or damaged, or lacks what the engine needs.
        """
        model = load_model(directory, precision, threads, engine, device, shortlist)
        return cls(**{each.name: getattr(model, each.name) for each in fields(model)})

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is an iterable of str, too
        self,
        text: str,
        options: TranslationOptions | None = None,
        *,
        draft: str | Sequence[int] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: Iterable[str],
        options: TranslationOptions | None = None,
        **changes: Unpack[OptionFields],
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | Iterable[str],
        options: TranslationOptions | None = None,
        *,
        draft: str | Sequence[int] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Translation | list[Translation]:
        """Translate one text, or several.

        Args:
            text: One line, or an iterable of lines. An empty line has an empty translation. The
                sentences of a line are translated one by one; see `split_sentences`.
            options: How to translate; the defaults if None.
            draft: An earlier translation to start from, as text or tokens, such as that of the text
                before it was edited. It changes the time and, except for rounding, nothing else.
                For one text and `beam=1`; each of several sentences gets its part.
            **changes: Fields of `TranslationOptions`, e.g. `beam=1`, that differ from `options`.

        Returns:
            One `Translation` for one text; a list of them, in order, for several.
        """
        job = self._translating(options, changes)
        if draft is not None:
            if not isinstance(text, str):
                raise TypeError(ONE_DRAFT)
            return self._submit_from_draft(text, draft, job).result()
        if isinstance(text, str):
            (translation,) = self._workers.stream([[text]], job, job.options.batch_tokens)
            return translation
        lines = list(check_lines(TEXTS, text))
        windows = [lines] if lines else []
        return list(self._workers.stream(windows, job, job.options.batch_tokens))

    def translate_batch(
        self,
        lines: Sequence[str],
        options: TranslationOptions | None = None,
        **changes: Unpack[OptionFields],
    ) -> list[Translation]:
        """Translate lines as one batch, in the calling thread.

        For a program that has workers of its own and knows which lines to batch, such as a server.
        """
        job = self._translating(options, changes)
        self._workers.check_open()
        work = job.prepare(lines)
        results = job.run(work.tasks) if work.tasks else []
        return [job.join([results[task] for task in tasks]) for tasks in work.tasks_of_item]

    def stream(
        self,
        lines: Iterable[str | None],
        options: TranslationOptions | None = None,
        *,
        advance: Callable[[int], None] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Stream[Translation, None, None]:
        """Translate lines as they come, in memory that does not grow with their number.

        Reads ahead: at first a few dozen lines, later some thousand. If the input may block, let it
        yield `None` first: all lines read by then are translated and yielded before the next line
        is read. Close the generator if you stop early.

        `advance` is called with the number of lines of each finished batch, by the thread that
        translated it. Results come in the order of the lines and so in bursts; a progress bar can
        be smoother.
        """
        job = self._translating(options, changes)
        windows = split_into_windows(check_lines(STREAM, lines, pauses=True), weigh=len)
        return self._workers.stream(windows, job, job.options.batch_tokens, advance)

    def longest_source(self, options: TranslationOptions | None = None) -> int:
        """Tokens of a line that are translated: `max_source_length`, or as many as the model has
        learned positions for, if those are fewer."""
        return self._model.longest_source(options or TranslationOptions())

    def longest_sentence(self, options: TranslationOptions | None = None) -> int:
        """Tokens of a sentence that is translated whole; cut a longer one at its clauses.

        That is `max_source_length`, or fewer if the model has learned from shorter ones only.
        `split_sentences` cuts so by itself.
        """
        return self._model.longest_sentence(options or TranslationOptions())

    def submit(
        self,
        text: str,
        options: TranslationOptions | None = None,
        *,
        draft: str | Sequence[int] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Future[Translation]:
        """Translate one text in the background; the future can be waited for or cancelled.

        Texts that are submitted are translated one by one: for many of them at once, `translate`
        and `stream` are faster. `draft` is as in `translate`.
        """
        check_text("", text)
        job = self._translating(options, changes)
        if draft is not None:
            return self._submit_from_draft(text, draft, job)
        return self._workers.submit(job, text, job.options.batch_tokens)

    @overload
    async def translate_async(  # type: ignore[overload-overlap]
        self,
        text: str,
        options: TranslationOptions | None = None,
        *,
        draft: str | Sequence[int] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Translation: ...

    @overload
    async def translate_async(
        self,
        text: Iterable[str],
        options: TranslationOptions | None = None,
        **changes: Unpack[OptionFields],
    ) -> list[Translation]: ...

    async def translate_async(
        self,
        text: str | Iterable[str],
        options: TranslationOptions | None = None,
        *,
        draft: str | Sequence[int] | None = None,
        **changes: Unpack[OptionFields],
    ) -> Translation | list[Translation]:
        """As `translate`, without blocking the event loop."""
        import asyncio

        if isinstance(text, str):
            return await asyncio.wrap_future(self.submit(text, options, draft=draft, **changes))
        if draft is not None:
            raise TypeError(ONE_DRAFT)
        lines = list(check_lines(TEXTS, text))
        return await asyncio.to_thread(lambda: self.translate(lines, options, **changes))

    def fill(
        self,
        source: str,
        prefix: str | Sequence[int] = "",
        suffix: str | Sequence[int] = "",
        n_best: int = 1,
        **options: Any,
    ) -> list[Filling]:
        """The best ways to write what lies between a prefix and a suffix; see `FillOptions`.

        Prefix and suffix, texts or tokens, come back exactly as they are given.
        """
        from bothends.filling import FillOptions

        check_text(" as the source", source)
        check_text(" as the prefix", prefix, or_tokens=True)
        check_text(" as the suffix", suffix, or_tokens=True)
        fill_options = FillOptions.build(n_best, options)
        self._workers.check_open()
        with self._model.context():
            return self._filler.fill(source, prefix, suffix, fill_options)

    def alternatives(
        self,
        source: str,
        translation: str,
        span: str | tuple[int, int],
        n_best: int = 5,
        **options: Any,
    ) -> list[Filling]:
        """Other ways to say a span of a translation: a text in it, or a pair of offsets."""
        from bothends.filling import FillOptions, find_alternatives

        check_text(" as the source", source)
        check_text(" as the translation", translation)
        fill_options = FillOptions.build(n_best, options)
        self._workers.check_open()
        with self._model.context():
            return find_alternatives(self._filler, source, translation, span, fill_options)

    def rescored_by(self, other: Translator) -> Translator:
        """A translator that ranks the hypotheses of its beam by `other`'s logprobs as well.

        For a model that writes several words at once, and a `1x1` model of the same languages that
        reads all of its hypotheses in one pass. The `score` of a translation is then the mean of
        both logprobs, normalised; its `logprob` stays this model's. It has workers of its own.
        `fill` and drafts do not use `other`.

        Raises:
            UsageError: The models name different languages.
        """
        from bothends.translating.rescoring import RescoredModel, check_languages

        if not isinstance(other, Translator):
            raise TypeError(
                f"expected a Translator, such as Translator.load(DIR), not {type(other).__name__}"
            )
        check_languages(self.description, other.description)
        rescored = copy(self)
        rescored._model = RescoredModel.of(self._model, other._model)
        rescored._workers = Workers(self.threads)
        return rescored

    def close(self) -> None:
        """End the worker threads. Submitted texts that have not begun are cancelled.

        A `with` block closes its translator. Without either, the threads end with the last
        reference to the translator.
        """
        self._workers.close()

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _submit_from_draft(
        self, text: str, draft: str | Sequence[int], job: Translating
    ) -> Future[Translation]:
        from bothends.translating.drafting import Drafted, Drafting, check_draft

        check_text(" as the draft", draft, or_tokens=True)
        check_draft(draft, job.options, self.vocabularies.target.size)
        drafted = Drafted(text, draft)
        return self._workers.submit(Drafting(job), drafted, job.options.batch_tokens)

    @property
    def _filler(self) -> Filler:
        from bothends.filling import Filler

        return Filler(self._model.generator, self.vocabularies)

    def _translating(self, options: TranslationOptions | None, changes: Any) -> Translating:
        return Translating(
            self._model,
            TranslationOptions.build(options, changes).decided(self.description.task),
            self.threads,
            self.description.source_language,
            self.description.target_language,
        )
