"""A process that ends when its parent does, even if the parent was killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait


def end_with_parent(number: signal.Signals | None = None) -> None:
    """From now on, leave at once when the process that spawned this one has ended.

    A process that has something to save asks for a signal instead, such as SIGTERM.
    """
    threading.Thread(target=_wait_for_parent, args=(number,), daemon=True).start()


def _wait_for_parent(number: signal.Signals | None) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "not started by multiprocessing"
    wait([parent.sentinel])
    if number is None:
        os._exit(1)
    os.kill(os.getpid(), number)
