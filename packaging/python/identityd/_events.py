"""Following the daemon's events across its restarts: each event comes once, and every gap is reported."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from . import _requests, _socket, verbs
from ._connection import Answer, ReceivedEvent
from ._engine import LONGEST_PAUSE, Backoff, Channel, Wait
from ._requests import Request
from ._words import Line
from .errors import Busy, ConnectionLost, Denied, IdentityError, TimedOut, Unreachable, refusal
from .verbs import CurrentValue, Position, Snapshot


@dataclass(frozen=True, slots=True)
class Event:
    """A change that the daemon has committed (identityd-protocol(7), Event lines)."""

    #: The sequence number. Later events have higher numbers.
    sequence: int
    #: The epoch of the number. Store both to continue after this event later.
    epoch: str
    topic: str
    #: The kind of change, such as `created`.
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def time(self) -> datetime | None:
        """The time of the event; None if the daemon sent none in the expected form."""
        try:
            return _requests.time(self.attributes["time"])
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Following:
    """Events follow. Comes at the beginning, and again after each interruption and each gap.

    `after` is the number after which they begin, and `epoch` its epoch. Store both to continue later.
    """

    after: int
    epoch: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The daemon is gone, for this reason. The client reconnects. No event is lost by the interruption itself."""

    error: IdentityError


@dataclass(frozen=True, slots=True)
class Gap:
    """Events are missing for good. `values` are all current values, which replace those built from events.

    No event falls between the values and the events that follow.
    """

    reason: str
    values: tuple[CurrentValue, ...]


Step = Event | Following | Interrupted | Gap


class _Place:
    """The position of a follower: it makes the requests, and interprets answers and events."""

    def __init__(self, topics: tuple[str, ...], since: int | None, epoch: str | None) -> None:
        self._topics = topics
        #: The number of the last event, or of the last one before the subscription; None if unknown.
        self.last = since
        self.epoch = epoch
        self._has_followed = False
        self._gap: str | None = None

    def request(self) -> Request[Position] | Request[Snapshot]:
        """The request for a new connection, or after a gap."""
        if self._gap is not None:
            return verbs.subscribe_snapshot(*self._topics)
        return verbs.subscribe(*self._topics, since=self.last, epoch=None if self.last is None else self.epoch)

    def accept(self, request: Request[Position] | Request[Snapshot], answer: Answer) -> Gap | bool:
        """Moves to the position that an answer names.

        :return: False if the request has to be made anew, because events are missing.
        :raises Refused: if the daemon refuses to send the events.
        """
        if answer.final.kind == "ERR":
            code, text = answer.final.words
            # The daemon rejects a number that it has assigned itself, so it has a new store.
            is_new = code == "bad-argument" and self._has_followed
            if self.last is None or not (code == "gone" or is_new):
                raise refusal(code, text)
            self._gap = f"the daemon has a new store, without event {self.last}" if is_new else text
            self.last = self.epoch = None
            return False
        value = request.value(answer)
        # With since=, only received events advance the position.
        if self.last is None:
            self.last = value.sequence
        self.epoch = value.epoch
        self._has_followed = True
        if isinstance(value, Snapshot):
            gap, self._gap = Gap(self._gap or "", value.snapshot), None
            return gap
        return True

    def take(self, received: ReceivedEvent) -> Event | bool:
        """Moves behind an event.

        :return: True for an event that has come before, False for a lag line: others have to be requested again.
        """
        last = self.last or 0
        topic, *rest = received.words
        if topic == "lag":
            # All events up to this number have come.
            self.last = max(last, _lag(received).start)
            return False
        if received.sequence <= last:
            return True
        self.last = received.sequence
        return Event(received.sequence, self.epoch or "", topic, rest[0] if rest else "", received.attributes)


@dataclass(frozen=True, slots=True)
class _Lag:
    """A line in place of events that the daemon has left out: the number before the first of them."""

    start: int


_lag_shape = _requests.Shape(_Lag, _requests.Field("from", "start", _requests.number))


def _lag(received: ReceivedEvent) -> _Lag:
    return _lag_shape(Line("EVENT", (), received.attributes))


class Follower:
    """The steps in following events, for callers that wait in their own way.

    `steps` yields waits, and is sent whether they ended in time, and the steps to report, after which it is sent True.
    """

    def __init__(
        self,
        path: str,
        trust: _socket.Trust,
        timeout: float | None,
        topics: tuple[str, ...],
        since: int | None,
        epoch: str | None,
    ) -> None:
        self._address = (path, trust)
        self._timeout = timeout
        self._place = _Place(topics, since, epoch)

    @property
    def position(self) -> tuple[int, str] | None:
        """The number after which the next events come, and its epoch; None while unknown."""
        last, epoch = self._place.last, self._place.epoch
        return None if last is None or epoch is None else (last, epoch)

    def steps(self) -> Generator[Wait | Step, bool, None]:
        """The waits and steps, without an end.

        :raises IdentityError: if the daemon was never reached, refuses to send the events, is not trusted, or violates
            the protocol. Once it was reached, its absence is a step.
        """
        was_reached, is_lost = False, True
        backoff = Backoff()
        while True:
            channel: Channel | None = None
            subscribed: float | None = None
            try:
                channel = yield from Channel.open(*self._address, self._deadline())
                was_reached = True
                gap = yield from self._subscribe(channel)
                if gap is not None:
                    yield gap
                if is_lost or gap is not None:
                    yield Following(self._place.last or 0, self._place.epoch or "")
                is_lost = False
                subscribed = time.monotonic()
                while (taken := self._place.take((yield from channel.event()))) is not False:
                    if isinstance(taken, Event):
                        backoff.reset()
                        yield taken
                # A new connection brings the missing events first, and in order.
            except (ConnectionLost, Unreachable, TimedOut, Busy, Denied) as error:
                # A denial ends a connection also when the process that opened it has exited: others go on with another.
                if not was_reached or (isinstance(error, Denied) and subscribed is None):
                    raise
                if not is_lost:
                    is_lost = True
                    yield Interrupted(error)
            finally:
                if channel is not None:
                    channel.close()
            # A connection that lasted for a while is no failed attempt.
            if subscribed is not None and time.monotonic() - subscribed >= LONGEST_PAUSE:
                backoff.reset()
            yield backoff.pause()

    def _deadline(self) -> float | None:
        return None if self._timeout is None else time.monotonic() + self._timeout

    def _subscribe(self, channel: Channel) -> Generator[Wait, bool, Gap | None]:
        while True:
            request = self._place.request()
            answer = yield from channel.exchange(request.line, self._deadline())
            accepted = self._place.accept(request, answer)
            if accepted is not False:
                return accepted if isinstance(accepted, Gap) else None
