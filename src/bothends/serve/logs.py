"""Structured logs: one JSON object a line, on stderr. Users' text is in them only on request."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any

_LOGGER = logging.getLogger("bothends.serve")


class JsonLines(logging.Formatter):
    """A record as a JSON object; records of other libraries have their message as `message`."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.gmtime(record.created)
        content: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', seconds)}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
            **getattr(record, "fields", {}),
        }
        if not hasattr(record, "event"):
            content["message"] = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            # An error's message may quote what it is about, which is users' text.
            content["error"] = record.exc_info[0].__name__
            content["traceback"] = traceback.format_tb(record.exc_info[2])
        return json.dumps(content, ensure_ascii=False, default=str)


def log(
    event: str, *, level: str = "info", exception: BaseException | None = None, **fields: Any
) -> None:
    """Write a line about an event."""
    _LOGGER.log(
        logging.getLevelName(level.upper()),
        event,
        extra={"event": event, "fields": fields},
        exc_info=exception,
    )


def is_logged(level: str) -> bool:
    """Whether lines of this level are written: what goes into them need not be made otherwise."""
    return _LOGGER.isEnabledFor(logging.getLevelName(level.upper()))


def write_logs(level: str = "info") -> None:
    """Send the logs of this process, uvicorn's too, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    _LOGGER.setLevel(level.upper())
