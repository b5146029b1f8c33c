"""Where a task is done: names of the node and of the worker, for reports."""

from __future__ import annotations

import os
import socket

_node: str | None = None


def name_node(name: str) -> None:
    """Give this process's node another name than the machine's: a machine may have several."""
    global _node
    _node = name


def node_name() -> str:
    return _node or socket.gethostname()


def worker_name() -> str:
    """This worker, among those of all nodes."""
    return f"{node_name()}/{os.getpid()}"
