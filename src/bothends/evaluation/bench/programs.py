"""Programs of others in a benchmark: text in, text out, in batches of lines.

What is timed is what somebody would wait for: lines go into a pipe, and the answers come out of
another. A program has its own search and threads, so there is one row for each batch size, and no
tokens, steps or time of processors are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bothends.errors import UsageError
from bothends.evaluation.bench.measure import Contestant
from bothends.evaluation.bench.systems import OWN_THREADS, Label, Request, Threads, TimedOutcome
from bothends.evaluation.bench.workload import Lines, Pairs
from bothends.jobs.filter_process import ProgramOptions
from bothends.jobs.line_program import LineProgram
from bothends.order import IntArray

#: Characters of a command that serve as its name.
_NAME_LENGTH = 40


@dataclass(frozen=True)
class Program:
    """A running program. Its tokens are bytes of UTF-8."""

    label: Label
    program: LineProgram

    def arrangements(self, cores: int) -> list[Threads]:
        return [OWN_THREADS]

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome:
        lines = [bytes(source.tolist()).decode("utf-8") for source in sources]
        answers = self.program.exchange(lines)
        return TimedOutcome([list(answer.encode()) for answer in answers], [0] * len(answers), None)


@contextmanager
def run_programs(
    commands: Sequence[ProgramOptions], name: str, pairs: Pairs, tokenizer: str
) -> Iterator[list[Contestant]]:
    """Contestants, and at the end a check that no program was out of step."""
    with ExitStack() as stack:
        contestants = []
        for options in commands:
            if options.restart:
                raise UsageError("--command-restart: bench measures programs that keep running")
            program = stack.enter_context(LineProgram(options))
            label = Label("models", short_name(options), "-", "program", "-")
            workload = Lines(name, pairs.lines, pairs.references, tokenizer)
            contestants.append(Contestant(Program(label, program), workload, None))
            program.check()  # it starts, and answers
        yield contestants
        for contestant in contestants:
            assert isinstance(contestant.system, Program)
            contestant.system.program.check()


def short_name(options: ProgramOptions) -> str:
    """`python teacher.py` for `/usr/bin/python3 recipes/teacher.py`."""
    name = " ".join(Path(word).name or word for word in options.command)
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 3]}..."
