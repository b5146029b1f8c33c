"""A command of this tool in a process of its own: its memory and threads go when it ends.

It ends when its parent does, even if that is killed: two trainings would be in each other's way if
one that nobody watches went on. SIGTERM lets a training write a checkpoint first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence

from bothends.jobs.lifetime import end_with_parent
from bothends.training.interruption import Interruption

#: Seconds between two looks at whether a signal is to be passed on.
_POLL = 0.2


def run_command(arguments: Sequence[str], processes: int = 1) -> int:
    """Run `bothends ARGUMENTS`, by torchrun if there are several processes; its exit status."""
    child = multiprocessing.get_context("spawn").Process(
        target=_command, args=(list(arguments), processes)
    )
    with Interruption() as interruption:
        child.start()
        passed_on = False
        while child.is_alive():
            child.join(_POLL)
            # Ctrl-C reaches the whole group of processes without us.
            if interruption.signal == signal.SIGTERM and not passed_on:
                child.terminate()
                passed_on = True
    status = child.exitcode or 0
    if interruption.signal:
        return 128 + interruption.signal
    return 128 - status if status < 0 else status


def _command(arguments: list[str], processes: int) -> None:
    end_with_parent(signal.SIGTERM)
    if processes == 1:
        from bothends.cli import run

        sys.exit(run(arguments))
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    # It would kill after half a minute, and a checkpoint comes after the update that is computed.
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(24 * 60 * 60))
    try:
        main(["--standalone", f"--nproc-per-node={processes}", "-m", "bothends", *arguments])
    except ChildFailedError as error:  # the command itself has printed its error
        sys.exit(error.get_first_failure()[1].exitcode)
    except SignalException as error:
        sys.exit(128 + error.sigval)
