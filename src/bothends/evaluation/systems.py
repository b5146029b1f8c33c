"""From files, models and programs to an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bothends.errors import UsageError, warn
from bothends.evaluation.evaluate import Evaluation, System, evaluate
from bothends.evaluation.parallel_lines import read_aligned, read_lines
from bothends.files import write_output
from bothends.jobs.filter_process import ProgramOptions
from bothends.jobs.line_program import LineProgram
from bothends.metrics.named import choose_metrics, default_tokenizer
from bothends.progress import progress
from bothends.text.lines import Invalid
from bothends.text.sentences import holds_several
from bothends.translating.load_options import LoadOptions
from bothends.translating.translation import Translation, TranslationOptions, splits_lines
from bothends.translator import Translator

#: Lines of several sentences, as a share of all: from here on, scores are about that, too.
MANY = 0.1


@dataclass(frozen=True)
class EvaluationPlan:
    """The settings of an evaluation."""

    reference: Path
    #: names of metrics, see `choose_metrics`
    metrics: str
    #: sacreBLEU's; None is the one for the language that the first model writes
    tokenizer: str | None = None
    #: translate `source`; the first is the baseline
    models: tuple[Path, ...] = ()
    source: Path | None = None
    #: programs that translate `source`, too; after the models
    commands: tuple[ProgramOptions, ...] = ()
    #: translations that exist already; after models and programs
    hypotheses: tuple[Path, ...] = ()
    #: where translations are written: one file for each model and program, or none
    outputs: tuple[Path, ...] = ()
    samples: int = 1000
    seed: int = 0
    options: TranslationOptions = field(default_factory=TranslationOptions)
    loading: LoadOptions = field(default_factory=LoadOptions)
    invalid: Invalid = "error"

    def __post_init__(self) -> None:
        if not self.models and not self.commands and not self.hypotheses:
            raise UsageError(
                "nothing to evaluate: give --model DIR and --source FILE, or --hypothesis"
            )
        if (self.models or self.commands) and self.source is None:
            option = "--model" if self.models else "--command"
            raise UsageError(f"{option} needs --source FILE, the text to translate")
        systems = len(self.models) + len(self.commands)
        if self.outputs and len(self.outputs) != systems:
            what = "models and programs" if self.commands else "models"
            raise UsageError(
                f"--output has {len(self.outputs)} files, but there are {systems} {what}: "
                "one for each"
            )


def evaluate_files(plan: EvaluationPlan) -> Evaluation:
    """Translate with all models, read what exists already, and score all of it."""
    reference = plan.reference
    # Complain about unknown names and missing packages before the work.
    metrics = choose_metrics(plan.metrics, plan.tokenizer or default_tokenizer(plan.models))
    references = read_lines(reference, plan.invalid, "a translation for each line")
    finished = [
        System(str(path), str(path), read_aligned(path, reference, len(references), plan.invalid))
        for path in plan.hypotheses
    ]
    sources = None
    if plan.source is not None:
        sources = read_aligned(plan.source, reference, len(references), plan.invalid)
    translated = []
    if sources is not None:
        systems = chain(_translate(plan, sources), _run(plan, sources))
        for number, system in enumerate(systems):
            translated.append(system)
            if plan.outputs:
                _write(plan.outputs[number], system.lines)
    return evaluate(
        [*translated, *finished],
        str(reference),
        references,
        metrics,
        plan.samples,
        plan.seed,
        sources,
    )


def _translate(plan: EvaluationPlan, sources: Sequence[str]) -> Iterator[System]:
    options = plan.options
    settings = f"beam {options.beam}, length penalty {options.length_penalty:g}"
    settings += {None: "", True: ", deduplicated", False: ", not deduplicated"}[options.deduplicate]
    for directory in plan.models:
        with plan.loading.load(directory) as translator:
            translations = translate_all(translator, str(directory), sources, options)
        texts = [translation.text for translation in translations]
        order, engine = translator.description.order, translator.engine_name
        engine += " with a shortlist" if translator.shortlist is not None else ""
        # A name on the Hub with the commit that it stood for.
        exact = translator.description.provenance.get("downloaded_from", directory)
        yield System(str(directory), f"{exact}: {order}, {engine}, {settings}", texts)


def _run(plan: EvaluationPlan, sources: Sequence[str]) -> Iterator[System]:
    for command in plan.commands:
        texts: list[str] = []
        with LineProgram(command) as program, progress(str(command), "lines", len(sources)) as done:
            step = len(sources) if command.restart else command.window
            for first in range(0, len(sources), step):
                texts += program.translate(sources[first : first + step])
                done(len(sources[first : first + step]))
        yield System(str(command), f"{command}: a program", texts)


def _write(output: Path, texts: Sequence[str]) -> None:
    write_output(output, "".join(f"{text}\n" for text in texts).encode())


def _warn_of_several(translator: Translator, name: str, lines: Sequence[str]) -> None:
    """A model leaves out sentences of such lines, and is scored for that."""
    if not splits_lines(translator.description.task):
        return
    language = translator.description.source_language
    several = sum(holds_several(line, language) for line in lines)
    if several > MANY * len(lines):
        warn(
            f"{name}: {several:,} of {len(lines):,} lines hold several sentences, and a model "
            "translates one at a time; translate would split them, evaluate does not"
        )


def translate_all(
    translator: Translator, name: str, lines: Sequence[str], options: TranslationOptions
) -> list[Translation]:
    """All translations of a text, with a progress bar and a warning about lines that were cut.

    A line of a test set is a unit: it is not split into sentences.
    """
    _warn_of_several(translator, name, lines)
    translations = []
    with progress(name, "lines", len(lines)) as advance:
        for translation in translator.stream(lines, options, split_sentences=False):
            translations.append(translation)
            advance(1)
    if overlong := sum(each.truncated for each in translations):
        warn(
            f"{name}: {overlong:,} lines were longer than {options.max_source_length} tokens, "
            "the rest of them is not translated"
        )
    return translations
