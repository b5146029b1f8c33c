"""Work that ends early: because its time is up, or because nobody waits for it any more.

The work runs in the task of its request. A task and a timer of its own for each reason to stop
would cost more than all else that is done for a short sentence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from starlette.types import Receive, Scope

#: In a request's scope, where the server has it: its connection.
CONNECTION = "bothends.connection"


class Deadline:
    """A time, and what to do then."""

    __slots__ = ("at", "callback")

    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback


class Deadlines:
    """Many deadlines and one timer, which ticks while there are any: hardly one is ever reached.

    For one event loop. A callback comes up to a tick late.
    """

    TICK = 0.05

    def __init__(self) -> None:
        self._waiting: set[Deadline] = set()
        self._ticking = False

    def add(self, seconds: float, callback: Callable[[], None]) -> Deadline:
        deadline = Deadline(time.monotonic() + seconds, callback)
        self._waiting.add(deadline)
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(self.TICK, self._tick)
        return deadline

    def discard(self, deadline: Deadline) -> None:
        self._waiting.discard(deadline)

    def _tick(self) -> None:
        now = time.monotonic()
        for deadline in [each for each in self._waiting if each.at <= now]:
            self._waiting.discard(deadline)
            deadline.callback()
        self._ticking = bool(self._waiting)
        if self._ticking:
            asyncio.get_running_loop().call_later(self.TICK, self._tick)


class Connection:
    """Tells those who ask when a client has gone away."""

    def __init__(self) -> None:
        self.is_lost = False
        self.listeners: set[Callable[[], None]] = set()

    def lose(self) -> None:
        self.is_lost = True
        for listener in tuple(self.listeners):
            listener()


class LimitedTime:
    """A block that ends with an error when its time is up, wherever its task is waiting."""

    def __init__(self, deadlines: Deadlines, seconds: float, late: Exception) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._late = late
        self._reason: Exception | None = None

    def __enter__(self) -> None:
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._deadline = self._deadlines.add(self._seconds, self._lose_time)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._deadlines.discard(self._deadline)
        if self._reason is None or not isinstance(error, asyncio.CancelledError):
            return
        # Python 3.11 counts: a task that others want to end, too, ends.
        uncancel = getattr(self._task, "uncancel", None)
        if uncancel is None or uncancel() == 0:
            raise self._reason from None

    def interrupt(self, reason: Exception) -> None:
        if self._reason is None and self._task is not None:
            self._reason = reason
            self._task.cancel()

    def _lose_time(self) -> None:
        self.interrupt(self._late)


class LimitedWork(LimitedTime):
    """The same, and it also ends when the client goes away. The body has been read by then."""

    def __init__(
        self,
        deadlines: Deadlines,
        seconds: float,
        late: Exception,
        gone: Exception,
        scope: Scope,
        receive: Receive,
    ) -> None:
        super().__init__(deadlines, seconds, late)
        self._gone = gone
        self._connection: Connection | None = scope.get(CONNECTION)
        self._receive = receive
        self._watching: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        if self._connection is None:  # another server than ours: it tells who goes on receiving
            self._watching = asyncio.ensure_future(self._watch())
        elif self._connection.is_lost:
            raise self._gone
        else:
            self._connection.listeners.add(self._leave)
        super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self._connection is not None:
            self._connection.listeners.discard(self._leave)
        if self._watching is not None:
            self._watching.cancel()
        super().__exit__(*exception)

    def _leave(self) -> None:
        self.interrupt(self._gone)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()
