"""What a server accepts, and the waiting room that refuses the rest at once.

A request is counted when it comes in, by its characters: they are known before anything is parsed.
What has been let in is answered; a request that does not fit is refused, with a time to come back.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bothends.errors import BothendsError

#: What loaded models may take together, unless told otherwise.
MEMORY_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Limits:
    """The limits of a server. A request beyond those of its kind gets a 4xx, never a part of it."""

    #: of a request, over all its texts
    characters: int = 20_000
    #: of a request: texts and the lines in them
    lines: int = 2_000
    body_bytes: int = 1_000_000
    #: from the last byte of a request to its answer
    seconds: float = 60.0
    #: for a client to send its headers, and then its body
    receive_seconds: float = 10.0
    #: hypotheses of a search
    beam: int = 16
    #: accepted and not yet answered
    waiting_requests: int = 256
    waiting_characters: int = 200_000
    #: of the waiting room that a single client may take up
    client_share: float = 0.5
    connections: int = 2_000


class OverloadedError(BothendsError):
    """The waiting room is full."""

    def __init__(self, message: str, retry_after: int, reason: str) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason = reason


class TooLargeError(BothendsError):
    """A request is beyond a limit, and always will be."""


def check_size(texts: list[str], limits: Limits) -> int:
    """The characters of a request, or an error if it is too large."""
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise TooLargeError(
            f"{characters:,} characters, but a request may have {limits.characters:,}; "
            "send it in parts"
        )
    lines = sum(text.count("\n") + 1 for text in texts)
    if lines > limits.lines:
        raise TooLargeError(
            f"{lines:,} lines, but a request may have {limits.lines:,}; send it in parts"
        )
    return characters


class Admission:
    """A request's time in the waiting room."""

    __slots__ = ("_characters", "_client", "_room")

    def __init__(self, room: WaitingRoom, client: str, characters: int) -> None:
        self._room = room
        self._client = client
        self._characters = characters

    def __enter__(self) -> None:
        self._room.enter(self._client, self._characters)

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        self._room.leave(self._client, self._characters, answered=kind is None)


class WaitingRoom:
    """Counts what has been accepted and not answered, in all and by client.

    Used by one thread, that of the event loop.
    """

    #: Seconds over which the speed of the server is averaged.
    MEMORY = 10.0

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.requests = 0
        self.characters = 0
        self._requests_of: Counter[str] = Counter()
        self._characters_of: Counter[str] = Counter()
        self._clock = clock
        #: characters per second that were answered of late
        self._speed = 0.0
        self._measured = clock()

    def admit(self, client: str, characters: int) -> Admission:
        """A block in which a request is in the room; entering it may raise `OverloadedError`."""
        return Admission(self, client, characters)

    def enter(self, client: str, characters: int) -> None:
        self._check(client, characters)
        self._count(client, 1, characters)

    def leave(self, client: str, characters: int, answered: bool) -> None:
        self._count(client, -1, -characters)
        if answered:
            self._note(characters)

    @property
    def full(self) -> bool:
        """Whether no request at all can be let in."""
        return self.requests >= self.limits.waiting_requests

    def _check(self, client: str, characters: int) -> None:
        limits = self.limits
        # An empty room takes any single request that the other limits allow.
        if self.requests and (
            self.requests >= limits.waiting_requests
            or self.characters + characters > limits.waiting_characters
        ):
            raise OverloadedError("the server is busy", self.retry_after(), "busy")
        share = limits.client_share
        if self._requests_of[client] and (
            self._requests_of[client] >= share * limits.waiting_requests
            or self._characters_of[client] + characters > share * limits.waiting_characters
        ):
            raise OverloadedError(
                "too many requests of yours are waiting", self.retry_after(), "client share"
            )

    def _count(self, client: str, requests: int, characters: int) -> None:
        self.requests += requests
        self.characters += characters
        self._requests_of[client] += requests
        self._characters_of[client] += characters
        if not self._requests_of[client]:
            del self._requests_of[client], self._characters_of[client]

    def _note(self, characters: int) -> None:
        now = self._clock()
        decay = math.exp((self._measured - now) / self.MEMORY)
        self._speed = self._speed * decay + characters / self.MEMORY
        self._measured = now

    def retry_after(self) -> int:
        """Seconds until half of what waits is likely to be done, from 1 to 30."""
        if self._speed <= 0:
            return 1
        return max(1, min(30, math.ceil(self.characters / 2 / self._speed)))
