"""The client that blocks. Threads may share one; see identityd.aio for asyncio."""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Generator
from math import ceil
from types import TracebackType
from typing import TypeVar

from ._engine import Engine, Steps, Wait
from ._events import Follower, Step
from ._requests import Request
from ._socket import Trust
from .errors import TimedOut

T = TypeVar("T")


class Client:
    """A connection to the daemon, which is made at the first request, and again after it ended.

    Threads that share a client wait for each other. A process that forks goes on with a connection of its own, because
    the daemon serves only the process that connected.
    """

    def __init__(
        self, path: str | None = None, *, trust: Trust = "system-or-own", timeout: float | None = 30.0
    ) -> None:
        """
        :param path: The socket; None for `IDENTITYD_SOCKET`, else the daemon of the system or of this user.
        :param trust: The users whose daemon the client accepts. It sends nothing to any other.
        :param timeout: The longest time for a request in seconds, with the wait for other threads; None for no limit.
        """
        self._engine = Engine(path, trust, timeout)
        self._lock = threading.Lock()
        _clients.add(self)

    def ask(self, request: Request[T]) -> T:
        """Sends a request of identityd.verbs, and waits for its answer.

        :raises IdentityError: as the classes of identityd.errors say.
        """
        deadline = self._engine.deadline()
        left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._lock.acquire(timeout=left):
            raise TimedOut("other threads used the client for too long")
        try:
            return _run(self._engine.ask(request, deadline))
        finally:
            self._lock.release()

    def events(self, *topics: str, since: int | None = None, epoch: str | None = None) -> Events:
        """Follows events on a connection of their own, across restarts of the daemon.

        :param topics: The topics (identityd-protocol(7), EVENTS); none for all.
        :param since: The number after which the events begin; None for events from now on.
        :param epoch: The epoch of `since`. Without it, a store that was replaced is not noticed.
        """
        engine = self._engine
        return Events(Follower(engine.path, engine.trust, engine.timeout, topics, since, epoch))

    def close(self) -> None:
        """Closes the connection. Another request makes a new one."""
        with self._lock:
            self._engine.drop()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forget_parent(self) -> None:
        # Another thread of the parent may have held the lock, and the connection is the parent's.
        self._lock = threading.Lock()
        self._engine.drop()


#: All clients, which a forked process has to separate from its parent's.
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _separate_clients() -> None:
    for client in list(_clients):
        client._forget_parent()


os.register_at_fork(after_in_child=_separate_clients)


class Events:
    """An iterator over the steps in following events: `Following`, `Event`, `Interrupted` and `Gap`.

    One thread at a time may use it.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._steps: Generator[Wait | Step, bool, None] = follower.steps()
        #: The wait that a time limit has left; None if there is none.
        self._wait: Wait | None = None

    @property
    def position(self) -> tuple[int, str] | None:
        """The number of the last event, and its epoch, to continue later; None while unknown."""
        return self._follower.position

    def next(self, timeout: float | None = None) -> Step:
        """Waits for the next step.

        :param timeout: The longest time in seconds; None for no limit.
        :raises TimedOut: if there is no step in time. The iterator goes on.
        :raises StopIteration: after `close`, or after an error that ends it.
        :raises IdentityError: if the daemon was never reached, or refuses to send the events.
        """
        end = None if timeout is None else time.monotonic() + timeout
        found = next(self._steps) if self._wait is None else self._wait
        while isinstance(found, Wait):
            self._wait = found
            if not (is_ready := _wait(found, end)) and not _has_passed(found.deadline):
                raise TimedOut("there was no event in time")
            self._wait = None
            found = self._steps.send(is_ready)
        return found

    def close(self) -> None:
        """Ends the iteration, and closes its connection."""
        self._steps.close()
        self._wait = None

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Step:
        return self.next()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(steps: Steps[T]) -> T:
    """Carries out steps. Any error closes them, so that no later request gets the rest of an answer."""
    try:
        wait = next(steps)
        while True:
            wait = steps.send(_wait(wait))
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


def _has_passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _wait(wait: Wait, end: float | None = None) -> bool:
    """Waits until the deadline of the wait, but no longer than until `end`; False if one of them passed first."""
    limits = [limit for limit in (wait.deadline, end) if limit is not None]
    left = max(0.0, min(limits) - time.monotonic()) if limits else None
    if wait.socket is None:
        time.sleep(left or 0.0)
        return False
    poll = select.poll()
    poll.register(wait.socket, select.POLLOUT if wait.is_for_room else select.POLLIN)
    return bool(poll.poll(None if left is None else ceil(left * 1_000)))
