"""Programs that read lines and write one for each, more or less: what `LineProgram` must bear."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from bothends.jobs.filter_process import ProgramOptions

#: Writes lines in capitals. At the line BAD it does what its first argument says; if there is a
#: second one, a file, it does so only once.
_PROGRAM = """
import os, sys, time

how = sys.argv[1]
once = sys.argv[2] if len(sys.argv) > 2 else None
print("a loud program", file=sys.stderr, flush=True)
if how == "never starts":
    sys.exit("no such model")
if how == "banner":
    print("Loading ...", flush=True)
if how == "needs all":
    lines = sys.stdin.readlines()
    sys.stdout.writelines(line.upper() for line in lines)
    sys.exit()


def is_bad(line):
    if line.strip() != "bad" or (once and os.path.exists(once)):
        return False
    if once:
        open(once, "w").close()
    return True


for number, line in enumerate(sys.stdin):
    answer = line.upper()
    if how == "varies":
        answer = f"{number} {answer}"
    if is_bad(line):
        if how == "exit":
            sys.exit("I cannot do this")
        if how == "killed":
            os.kill(os.getpid(), 9)
        if how == "hang":
            time.sleep(600)
        if how == "hang later":
            sys.stdout.write(answer)
            sys.stdout.flush()
            time.sleep(600)
        if how == "two lines":
            answer = "B\\nAD\\n"
        if how == "no line":
            answer = ""
        if how == "bytes":
            sys.stdout.buffer.write(b"\\xff\\n")
            answer = ""
        if how == "endless":
            while True:
                sys.stdout.write("x" * 65536)
        if how == "loud":
            sys.stderr.write("y" * 1_000_000)
    sys.stdout.write(answer)
    sys.stdout.flush()
"""


def program(
    directory: Path,
    how: str = "well",
    once: bool = False,
    timeout: float = 60.0,
    window: int = 4,
    restart: bool = False,
) -> ProgramOptions:
    """A program that behaves so, perhaps only once."""
    path = directory / "program.py"
    path.write_text(_PROGRAM, encoding="utf-8")
    words = [sys.executable, str(path), how, *[str(directory / f"was {how}")] * once]
    return ProgramOptions.parse(shlex.join(words), timeout, window, restart)


@cache
def patience(least: float = 1.0) -> float:
    """Seconds after which a program of this kind hangs: many times what it takes to start here."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import os, sys, time"], check=True)
    return max(least, round(10 * (time.monotonic() - began), 1))
