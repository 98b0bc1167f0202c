"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from types import TracebackType
from typing import TypeVar

from ._engine import Engine, Steps, Wait
from ._events import Follower, Step
from ._requests import Request
from ._socket import Trust
from .errors import TimedOut

T = TypeVar("T")


class Client:
    """A connection to the daemon, for the tasks of one event loop. They wait for each other.

    A task that is cancelled during its request closes the connection, so that no other one gets its answer. The change
    may or may not have been made then.
    """

    def __init__(
        self, path: str | None = None, *, trust: Trust = "system-or-own", timeout: float | None = 30.0
    ) -> None:
        """
        :param path: The socket; None for `IDENTITYD_SOCKET`, else the daemon of the system or of this user.
        :param trust: The users whose daemon the client accepts. It sends nothing to any other.
        :param timeout: The longest time for a request in seconds, with the wait for other tasks; None for no limit.
        """
        self._engine = Engine(path, trust, timeout)
        self._lock = asyncio.Lock()

    async def ask(self, request: Request[T]) -> T:
        """Sends a request of identityd.verbs, and waits for its answer.

        :raises IdentityError: as the classes of identityd.errors say.
        """
        deadline = self._engine.deadline()
        try:
            async with asyncio.timeout(self._engine.timeout):
                await self._lock.acquire()
        except TimeoutError:
            raise TimedOut("other tasks used the client for too long") from None
        try:
            return await _run(self._engine.ask(request, deadline))
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

    async def close(self) -> None:
        """Closes the connection. Another request makes a new one."""
        async with self._lock:
            self._engine.drop()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Events:
    """An iterator over the steps in following events: `Following`, `Event`, `Interrupted` and `Gap`.

    One task at a time may use it. A task that is cancelled while it waits loses no step.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._steps: Generator[Wait | Step, bool, None] = follower.steps()
        #: The wait that a cancellation has left; None if there is none.
        self._wait: Wait | None = None

    @property
    def position(self) -> tuple[int, str] | None:
        """The number of the last event, and its epoch, to continue later; None while unknown."""
        return self._follower.position

    async def aclose(self) -> None:
        """Ends the iteration, and closes its connection."""
        self._steps.close()
        self._wait = None

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Step:
        """Waits for the next step.

        :raises StopAsyncIteration: after `aclose`, or after an error that ends it.
        :raises IdentityError: if the daemon was never reached, or refuses to send the events.
        """
        try:
            found = next(self._steps) if self._wait is None else self._wait
            while isinstance(found, Wait):
                self._wait = found
                is_ready = await _wait(found)
                self._wait = None
                found = self._steps.send(is_ready)
        except StopIteration:
            raise StopAsyncIteration from None
        return found

    async def __aenter__(self) -> Events:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _run(steps: Steps[T]) -> T:
    """Carries out steps. Any error and a cancellation close them."""
    try:
        wait = next(steps)
        while True:
            wait = steps.send(await _wait(wait))
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


async def _wait(wait: Wait) -> bool:
    """Waits; False if the deadline passed first."""
    loop = asyncio.get_running_loop()
    left = None if wait.deadline is None else max(0.0, wait.deadline - time.monotonic())
    if wait.socket is None:
        await asyncio.sleep(left or 0.0)
        return False
    ready = asyncio.Event()
    number = wait.socket.fileno()
    (loop.add_writer if wait.is_for_room else loop.add_reader)(number, ready.set)
    try:
        async with asyncio.timeout(left):
            await ready.wait()
        return True
    except TimeoutError:
        return False
    finally:
        (loop.remove_writer if wait.is_for_room else loop.remove_reader)(number)
