"""The state of a connection without its socket: received bytes go in, answers and events come out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ._words import Line, line
from .errors import BrokenAnswer

#: The maximum length of a line in bytes. The longest line of identityd, an item with its attributes, is far shorter.
LINE_BYTES = 1 << 24
#: The maximum length of an answer in bytes. The longest one is a backup of 256 MiB in Base64.
ANSWER_BYTES = 1 << 29


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer: its rows and its final line, `OK` or `ERR`."""

    rows: tuple[Line, ...]
    final: Line


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event line: its sequence number, its words after that, and its attributes."""

    sequence: int
    words: tuple[str, ...]
    attributes: dict[str, str] = field(repr=False)


class Farewell(NamedTuple):
    """An `ERR` without a request: the reason why the daemon closes the connection."""

    code: str
    text: str


class Connection:
    """The received bytes of a connection, and the requests that wait for an answer.

    After an error the state is undefined, and the connection has to be closed.
    """

    def __init__(self) -> None:
        #: The beginning of a line.
        self._buffer = bytearray()
        self._expected = 0
        self._rows: list[Line] = []
        self._answer_bytes = 0
        self._ready: deque[Answer | ReceivedEvent | Farewell] = deque()

    def expect(self) -> None:
        """Notes that a request was sent."""
        self._expected += 1

    @property
    def is_idle(self) -> bool:
        """Whether no request waits, and nothing was received beyond the last answer."""
        return not (self._expected or self._buffer or self._ready)

    def receive(self, data: bytes) -> None:
        """Takes received bytes.

        :raises BrokenAnswer: if they violate the protocol or exceed its bounds.
        """
        last = data.rfind(b"\n") + 1
        if last == 0:
            self._buffer += data
        else:
            complete = bytes(self._buffer) + data[:last]
            # The line may hold a secret.
            self._buffer[:] = bytes(len(self._buffer))
            self._buffer = bytearray(data[last:])
            for received in complete[:-1].split(b"\n"):
                self._take(line(received), len(received))
        if len(self._buffer) > LINE_BYTES:
            raise BrokenAnswer(f"the daemon sent a line of more than {LINE_BYTES} bytes")

    def next(self) -> Answer | ReceivedEvent | Farewell | None:
        """Removes and returns the oldest answer, event or farewell; None if none is complete."""
        return self._ready.popleft() if self._ready else None

    def _take(self, parsed: Line, length: int) -> None:
        if parsed.kind == "EVENT":
            self._take_event(parsed)
        elif parsed.kind == "ERR" and not self._expected:
            self._ready.append(Farewell(*parsed.words))
        elif not self._expected:
            raise BrokenAnswer("the daemon sent an answer without a request")
        elif parsed.kind == "*":
            self._answer_bytes += length
            if self._answer_bytes > ANSWER_BYTES:
                raise BrokenAnswer(f"the daemon sent an answer of more than {ANSWER_BYTES} bytes")
            self._rows.append(parsed)
        else:
            self._ready.append(Answer(tuple(self._rows), parsed))
            self._rows = []
            self._answer_bytes = 0
            self._expected -= 1

    def _take_event(self, parsed: Line) -> None:
        sequence, *words = parsed.words or ("",)
        if self._rows or len(words) < 1 or not (sequence.isascii() and sequence.isdigit() and len(sequence) < 20):
            raise BrokenAnswer("the daemon sent an event that violates the protocol")
        self._ready.append(ReceivedEvent(int(sequence), tuple(words), parsed.attributes))
