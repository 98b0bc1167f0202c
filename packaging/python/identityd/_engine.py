"""Requests over a socket that does not block, for callers that wait in their own way.

The functions are generators: each yields the waits that it needs, and gets back whether the wait ended in time. So
the blocking client and the one for asyncio have the same engine. A generator that is closed in the middle of a request
closes its connection, because the answer may still come.
"""

from __future__ import annotations

import os
import random
import select
import socket
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from . import _socket
from ._connection import Answer, Connection, Farewell, ReceivedEvent
from ._requests import Request
from .errors import BadArgument, BrokenAnswer, ConnectionLost, TimedOut, refusal

T = TypeVar("T")

#: The first and the longest pause between two attempts to connect, in seconds: as long as a restart of the daemon, and
#: so short that its return is noticed without delay.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
#: The number of bytes that are received at a time, and so a bound of the events that wait for their reader.
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait until a socket is readable (or writable), or until a moment of time.monotonic() has passed.

    Without a socket it is a pause, and with neither limit it does not end.
    """

    socket: socket.socket | None
    is_for_room: bool = False
    deadline: float | None = None


#: A computation that waits. It is sent False for a wait whose deadline has passed, otherwise True.
Steps = Generator[Wait, bool, T]


class Backoff:
    """Pauses that double between attempts. Half of each is random, so that clients do not return at the same moment."""

    def __init__(self) -> None:
        self._bound = SHORTEST_PAUSE

    def pause(self) -> Wait:
        """The next pause, as a wait."""
        made = Wait(None, deadline=time.monotonic() + random.uniform(self._bound / 2, self._bound))
        self._bound = min(self._bound * 2, LONGEST_PAUSE)
        return made

    def reset(self) -> None:
        """Starts again with the shortest pause."""
        self._bound = SHORTEST_PAUSE


class Channel:
    """A connected socket with the state of its connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        #: The daemon serves only the process that connected.
        self._process = os.getpid()
        self._connection = Connection()

    @staticmethod
    def open(path: str, trust: _socket.Trust, deadline: float | None) -> Steps[Channel]:
        """Connects. While the daemon's accept queue is full, tries again until the deadline.

        :raises Unreachable, Untrusted, TimedOut: nothing was sent.
        """
        backoff = Backoff()
        while (connected := _socket.connect(path, trust)) is None:
            yield backoff.pause()
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut("the daemon accepted no connection in time")
        return Channel(connected)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def is_quiet(self) -> bool:
        """Whether the connection is this process's, open, and without unread data, as expected between two requests."""
        if self._process != os.getpid():
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return self._connection.is_idle and not poll.poll(0)

    def exchange(self, line: bytes, deadline: float | None) -> Steps[Answer]:
        """Sends a request line, and waits for the answer.

        :raises ConnectionLost, BrokenAnswer, TimedOut: the channel must not be used again.
        """
        self._connection.expect()
        yield from self._send(line, deadline)
        match (yield from self._next(deadline)):
            case Answer() as answer:
                return answer
            case _:
                raise BrokenAnswer("the daemon sent an event in place of an answer")

    def event(self) -> Steps[ReceivedEvent]:
        """Waits for the next event, without a limit.

        :raises ConnectionLost, BrokenAnswer, Refused: the channel must not be used again.
        """
        match (yield from self._next(None)):
            case ReceivedEvent() as event:
                return event
            case Farewell() as farewell:
                raise refusal(*farewell)
            case _:
                raise BrokenAnswer("the daemon sent an answer without a request")

    def _send(self, line: bytes, deadline: float | None) -> Steps[None]:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                if not (yield Wait(self._socket, is_for_room=True, deadline=deadline)):
                    raise TimedOut("the daemon took no request in time") from None
            except OSError:
                # The daemon may have refused the connection already. The reason can still be read.
                return

    def _next(self, deadline: float | None) -> Steps[Answer | ReceivedEvent | Farewell]:
        while (found := self._connection.next()) is None:
            if self._process != os.getpid():
                raise ConnectionLost("the connection to identityd is that of the parent process")
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                if not (yield Wait(self._socket, deadline=deadline)):
                    raise TimedOut("the daemon did not answer in time") from None
                continue
            except OSError as error:
                raise ConnectionLost("the connection to identityd ended before the answer") from error
            if not data:
                raise ConnectionLost("the connection to identityd ended before the answer")
            # A daemon that sends without end must not outlast the deadline.
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut("the daemon did not answer in time")
            self._connection.receive(data)
        return found


class Engine:
    """One connection for the requests of a client, one at a time. It is made when it is needed."""

    def __init__(self, path: str | None, trust: _socket.Trust, timeout: float | None) -> None:
        self.path = path if path is not None else _socket.default_path()
        self.trust = trust
        self.timeout = timeout
        self._channel: Channel | None = None

    def drop(self) -> None:
        """Closes the connection, if there is one. The next request makes another."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def deadline(self) -> float | None:
        """The moment when a request that begins now has to have its answer."""
        return None if self.timeout is None else time.monotonic() + self.timeout

    def ask(self, request: Request[T], deadline: float | None) -> Steps[T]:
        """Sends a request, and returns the value of its answer.

        :raises IdentityError: as the classes of identityd.errors say.
        """
        if request.verb in ("subscribe", "unsubscribe"):
            raise BadArgument("bad-argument", f"'{request.verb}' would mix events with answers; use events()")
        answer = yield from self._answer(request, deadline)
        if request.verb == "quit":
            # The daemon closes the connection a moment after its answer.
            self.drop()
        return request.value(answer)

    def _answer(self, request: Request[T], deadline: float | None) -> Steps[Answer]:
        is_first = True
        while True:
            if self._channel is not None and not self._channel.is_quiet():
                self.drop()
            is_complete = False
            try:
                if self._channel is None:
                    self._channel = yield from Channel.open(self.path, self.trust, deadline)
                answer = yield from self._channel.exchange(request.line, deadline)
                is_complete = True
                return answer
            except ConnectionLost:
                if not is_first or not request.is_question:
                    raise
                is_first = False
            finally:
                if not is_complete:
                    self.drop()
