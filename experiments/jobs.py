"""Jobs that need each other, several at once, in processes that a stop leaves in good order.

A job holds a lock as long as it or a process that it started is alive, even if the runner itself
was killed: no two trainings ever write into one directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bothends.errors import BothendsError
from bothends.files import locked


class StoppedError(BothendsError):
    """A signal came; what is done is done, and the rest has not begun."""


@dataclass(frozen=True)
class ExperimentJob:
    """Something to make; `work` does only what is not done yet."""

    name: str
    #: what is made; its lock and the output of its commands are next to it
    target: Path
    work: Callable[[Shell], None]
    needs: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        return self.target.with_name(f"{self.target.name}.log")

    @property
    def lock(self) -> Path:
        return self.target.with_name(f".{self.target.name}.lock")


@dataclass
class RunningProcesses:
    """All processes that run now, to be stopped together."""

    alive: set[subprocess.Popen[bytes]] = field(default_factory=set)
    #: the signal that ends everything, or 0
    signal: int = 0

    def stop(self, number: int, _frame: object = None) -> None:
        """Ask all to end: a training writes a checkpoint and leaves."""
        self.signal = number
        for process in list(self.alive):
            process.terminate()


@dataclass(frozen=True)
class Shell:
    """Runs the commands of one job."""

    job: ExperimentJob
    processes: RunningProcesses
    lock: int

    def bothends(self, *arguments: object, output: Path | None = None) -> None:
        self.run([sys.executable, "-m", "bothends", *map(str, arguments)], output)

    def run(self, command: Sequence[str], output: Path | None = None) -> None:
        """Run a command; what it prints goes to `output`, and all else to the job's log."""
        log = self.job.log
        # One thread each: several jobs at once are what uses the cores.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
        begin = log.stat().st_size if log.exists() else 0
        with (
            open(log, "ab") as everything,
            open(output or log, "wb" if output else "ab") as printed,
        ):
            if self.processes.signal:
                raise StoppedError("stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=everything,
                env=environment,
                pass_fds=(self.lock,),
                # Ctrl-C on a terminal goes to all processes of a group; a training takes a second
                # signal as an order to drop everything.
                start_new_session=True,
            )
            self.processes.alive.add(process)
            try:
                if self.processes.signal:  # it came while the process started
                    process.terminate()
                status = process.wait()
            finally:
                self.processes.alive.discard(process)
        if self.processes.signal:
            raise StoppedError("stopped")
        if status:
            with open(log, encoding="utf-8", errors="replace") as lines:
                lines.seek(begin)
                said = lines.read().strip().rpartition("\n")[2] or f"exit status {status}"
            raise BothendsError(f"{said} (all of it: {log})")

    def say(self, text: str) -> None:
        # One write with its newline: jobs that speak at once must not do so on one line.
        print(f"{time.strftime('%H:%M:%S')} {self.job.name}: {text}\n", end="", flush=True)


def run_jobs(
    jobs: Sequence[ExperimentJob], at_once: int, processes: RunningProcesses
) -> dict[str, str]:
    """Run jobs in order, each after those it needs; what failed, and why."""
    failed: dict[str, str] = {}
    done: set[str] = set()
    waiting = list(jobs)
    running: dict[Future[None], ExperimentJob] = {}
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            for job in list(waiting):
                if broken := next((need for need in job.needs if need in failed), None):
                    failed[job.name] = f"needs {broken}"
                    waiting.remove(job)
                elif len(running) < at_once and done.issuperset(job.needs):
                    running[pool.submit(_run, job, processes)] = job
                    waiting.remove(job)
            if processes.signal:
                waiting.clear()
            if not running:
                return failed
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                error = future.exception()
                if error is None:
                    done.add(job.name)
                elif isinstance(error, BothendsError):
                    failed[job.name] = str(error)
                    if not isinstance(error, StoppedError):
                        print(f"{job.name}: error: {error}", file=sys.stderr, flush=True)
                else:
                    processes.stop(signal.SIGTERM)
                    raise error


@contextmanager
def catch_signals(processes: RunningProcesses) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the processes; only the main thread can be told."""
    assert threading.current_thread() is threading.main_thread()
    before = {
        number: signal.signal(number, processes.stop) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(job: ExperimentJob, processes: RunningProcesses) -> None:
    job.lock.parent.mkdir(parents=True, exist_ok=True)
    with locked(job.lock, f"another process is at work on {job.target}") as lock:
        job.work(Shell(job, processes, lock.fileno()))
