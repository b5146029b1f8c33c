"""Teachers: a model of ours, or any program that reads and writes lines."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from bothends.distillation.shard_file import Record
from bothends.engines.registry import EngineName
from bothends.errors import UsageError
from bothends.jobs.digests import settings_digest
from bothends.jobs.filter_process import ProgramOptions
from bothends.jobs.line_program import LineProgram
from bothends.jobs.processors import processor_kind
from bothends.model.directory import VOCABULARIES, WEIGHTS, read_description
from bothends.model.graph_files import GRAPHS, stored_graph
from bothends.model.hub import shown
from bothends.model.shortlist import SHORTLIST
from bothends.translating.translation import TranslationOptions
from bothends.translator import Translator

#: Lines in, a record for each out.
Translate = Callable[[Sequence[str]], list[Record]]


class Teacher(Protocol):
    """What a distillation asks of a teacher. It is pickled and sent to workers."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def has_scores(self) -> bool:
        """Whether its records have log probabilities."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """The fields of `Job` that decide its translations; mistakes in them are errors now."""
        ...

    def provenance(self) -> Mapping[str, Any]:
        """More facts for readers of the manifest."""
        ...

    def packages(self) -> Sequence[str]:
        """Python packages whose versions may affect its translations."""
        ...

    def start(self) -> AbstractContextManager[Translate]:
        """Load it."""
        ...


@dataclass(frozen=True)
class ModelTeacher:
    """A model directory, and how it translates."""

    directory: Path
    engine: EngineName = "onnx"
    beam: int = TranslationOptions.beam
    length_penalty: float = TranslationOptions.length_penalty
    max_source_length: int = TranslationOptions.max_source_length
    #: translate the sentences of a line one by one
    split_sentences: bool = False
    has_scores: bool = True

    @property
    def name(self) -> str:
        return shown(self.directory)

    @property
    def options(self) -> TranslationOptions:
        return TranslationOptions(
            beam=self.beam,
            length_penalty=self.length_penalty,
            max_source_length=self.max_source_length,
            split_sentences=self.split_sentences,
        )

    def settings(self) -> Mapping[str, Any]:
        options = self.options
        return {
            "teacher": self.fingerprint(),
            "engine": self.engine,
            "beam": options.beam,
            "length_penalty": options.length_penalty,
            "max_source_length": options.max_source_length,
            "split_sentences": options.split_sentences or None,
        }

    def fingerprint(self) -> str:
        """SHA-256 of all that a translation depends on; not of where the weights come from."""
        description = read_description(self.directory).dump()
        del description["provenance"]
        lengths = description.pop("lengths", None)  # which judge a translation ...
        if lengths and self.split_sentences:  # ... and tell where long sentences are cut
            description["longest_source"] = lengths["longest_source"]
        digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
        graphs = [stored_graph(self.directory, name).name for name in GRAPHS]
        network = [WEIGHTS] if self.engine == "torch" else graphs
        words = (SHORTLIST,) if self.engine == "native" else ()
        for name in (*VOCABULARIES, *network, *words):
            path = self.directory / name
            if path.is_file():  # `start` reports missing files
                digest.update(name.encode())
                with open(path, "rb") as file:
                    while chunk := file.read(1 << 20):
                        digest.update(chunk)
        return digest.hexdigest()

    def provenance(self) -> Mapping[str, Any]:
        return {
            "teacher": shown(self.directory),
            "teacher_description": read_description(self.directory).dump(),
        }

    def packages(self) -> Sequence[str]:
        return ("numpy", "torch" if self.engine == "torch" else "onnxruntime", "sentencepiece")

    @contextmanager
    def start(self) -> Iterator[Translate]:
        # On one core: how lines are batched must not depend on the machine.
        with Translator.load(self.directory, threads=1, engine=self.engine) as translator:
            yield lambda lines: translate_lines(translator, self.options, lines)


def translate_lines(
    translator: Translator, options: TranslationOptions, lines: Sequence[str]
) -> list[Record]:
    """A record for each line."""
    return [Record.of(translation) for translation in translator.translate(lines, options)]


@dataclass(frozen=True)
class CommandTeacher:
    """Any program that reads lines and writes one line for each.

    It has no scores, and lengths are counted in characters.
    """

    program: ProgramOptions
    #: must change when its translations change
    version: str | None = None
    has_scores: bool = False

    @property
    def name(self) -> str:
        return str(self.program)

    def settings(self) -> Mapping[str, Any]:
        identity = {"command": list(self.program.command), "version": self.version}
        return {
            "teacher": settings_digest(identity),
            "command": str(self.program),
            "version": self.version,
        }

    def provenance(self) -> Mapping[str, Any]:
        return {"teacher": str(self.program), "teacher_version": self.version}

    def packages(self) -> Sequence[str]:
        return ()

    @contextmanager
    def start(self) -> Iterator[Translate]:
        with LineProgram(self.program) as program:

            def translate(lines: Sequence[str]) -> list[Record]:
                distinct = list(dict.fromkeys(lines))
                answers = dict(zip(distinct, program.translate(distinct), strict=True))
                return [_record(line, answers[line]) for line in lines]

            yield translate


def _record(line: str, answer: str) -> Record:
    return Record(
        text=_without_nul(answer),
        logprob=None,
        tokens=len(answer),
        source_tokens=len(line),
        finished=True,
        truncated=False,
    )


def _without_nul(text: str) -> str:
    """A byte token can stand for NUL, which no text file should have."""
    return text.replace("\0", " ")


def package_versions(teacher: Teacher) -> dict[str, str]:
    return {package: version(package) for package in teacher.packages()}


def kind_of(teacher: Teacher) -> str:
    """Processor, kernels and versions with which a teacher translates here.

    Where two are equal, so are translations, to the last bit.
    """
    parts = [processor_kind()]
    if getattr(teacher, "engine", None) == "native":
        from bothends.engines.native import instruction_sets
        from bothends.engines.native.engine import INSTRUCTION_SET

        parts.append(
            f"native {os.environ.get(INSTRUCTION_SET) or (instruction_sets() or ['?'])[-1]}"
        )
    parts += [f"{name} {version}" for name, version in package_versions(teacher).items()]
    return ", ".join(parts)


def choose_teacher(model: ModelTeacher | None, command: CommandTeacher | None) -> Teacher:
    """The one teacher that was given."""
    if model is not None and command is not None:
        raise UsageError("--teacher and --teacher-command: give one of the two")
    teacher = model or command
    if teacher is None:
        raise UsageError("no teacher: give --teacher DIR or --teacher-command CMD")
    return teacher
