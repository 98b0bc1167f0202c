"""Requests, and the shapes that turn answers into values."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar, cast

from . import _words
from ._connection import Answer
from ._words import Line
from .errors import BrokenAnswer, refusal

T = TypeVar("T")

# MARK: Values of answers. A decoder raises ValueError for a text that is no such value.


def text(value: str) -> str:
    """Any text."""
    return value


def number(value: str) -> int:
    """A decimal number of at most 20 digits."""
    if not (value.isascii() and value.isdigit() and len(value) <= 20):
        raise ValueError
    return int(value)


def boolean(value: str) -> bool:
    """`yes` or `no`."""
    return {"yes": True, "no": False}[value]


def time(value: str) -> datetime:
    """A time (RFC 3339) in UTC with three decimals."""
    return datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def identifier(value: str) -> uuid.UUID:
    """A UUID."""
    return uuid.UUID(value)


def words(value: str) -> tuple[str, ...]:
    """Words that are joined by commas."""
    return tuple(value.split(",")) if value else ()


def secret(value: str) -> bytes:
    """Bytes in Base64."""
    return base64.b64decode(value, validate=True)


def nullable(decode: Callable[[str], T]) -> Callable[[str], T | None]:
    """A value of which the empty text stands for none."""
    return lambda value: decode(value) if value else None


# MARK: Shapes


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a line: its name there, its name in Python, and its decoder."""

    name: str
    key: str
    decode: Callable[[str], object]
    is_word: bool = False
    is_optional: bool = False
    #: Whether the name is the beginning of the attributes that together are the field, such as `attr.`.
    is_prefix: bool = False


class Shape(Generic[T]):
    """The fields of a line, and the class of the value that they make."""

    def __init__(self, make: Callable[..., T], *fields: Field, is_open: bool = False) -> None:
        self._make = make
        self._fields = fields
        #: Whether the value has all attributes of the line, too, as `attributes`.
        self._is_open = is_open

    def __call__(self, line: Line) -> T:
        """Makes the value of a line. Words and attributes that are not known are left out.

        :raises BrokenAnswer: if a field is missing or has another form. The error does not repeat it.
        """
        values: dict[str, object] = {"attributes": line.attributes} if self._is_open else {}
        place = 0
        for one in self._fields:
            found: str | None = None
            if one.is_prefix:
                size = len(one.name)
                values[one.key] = {key[size:]: it for key, it in line.attributes.items() if key.startswith(one.name)}
                continue
            if one.is_word:
                found = line.words[place] if place < len(line.words) else None
                place += 1
            else:
                found = line.attributes.get(one.name)
            if found is None:
                if not one.is_optional:
                    raise BrokenAnswer(f"the daemon sent an answer without '{one.name}'")
                continue
            values[one.key] = _decoded(one, found)
        return self._make(**values)


def _decoded(one: Field, found: str) -> object:
    try:
        return one.decode(found)
    except (ValueError, KeyError, binascii.Error):
        # The error may have the text, so it must not become part of the next one.
        pass
    raise BrokenAnswer(f"the daemon sent an answer whose '{one.name}' has another form")


def value(one: Field) -> Callable[[Line], Any]:
    """The value of the only field of a line; None if it is missing."""
    return Shape(lambda **found: found.get(one.key), one)


# MARK: Answers


def nothing(_: Answer) -> None:
    """An `OK` without content."""


def one(shape: Callable[[Line], T]) -> Callable[[Answer], T]:
    """The final line."""
    return lambda answer: shape(answer.final)


def rows(shape: Callable[[Line], T]) -> Callable[[Answer], tuple[T, ...]]:
    """The rows."""
    return lambda answer: tuple(map(shape, answer.rows))


def report(
    make: Callable[..., T], rows_key: str, row: Callable[[Line], object], *fields: Field
) -> Callable[[Answer], T]:
    """The final line together with the rows, which are the field `rows_key`."""

    def decode(answer: Answer) -> T:
        return Shape(partial(make, **{rows_key: tuple(map(row, answer.rows))}), *fields)(answer.final)

    return decode


def metrics(answer: Answer) -> tuple[Metric, ...]:
    """The rows of `stats`. Each has one attribute that is the value, and then its labels."""
    made = []
    for row in answer.rows:
        if row.words or not row.attributes:
            raise BrokenAnswer("the daemon sent a metric of another form")
        (name, value), *labels = row.attributes.items()
        made.append(Metric(name, cast(float, _decoded(Field(name, name, float), value)), dict(labels)))
    return tuple(made)


def properties(make: Callable[..., T], repeated: tuple[str, ...], *fields: Field) -> Callable[[Answer], T]:
    """Rows of one attribute each, which together are one value. A repeated one is a tuple."""
    known = {one.name: one for one in fields}

    def decode(answer: Answer) -> T:
        values: dict[str, Any] = {}
        for row in answer.rows:
            for name, value in row.attributes.items():
                if name not in known:
                    continue
                decoded = _decoded(known[name], value)
                key = known[name].key
                values[key] = (*values.get(key, ()), decoded) if name in repeated else decoded
        return make(**values)

    return decode


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of `stats`: a metric with its value and its labels (identityd-protocol(7), section METRICS)."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


# MARK: Requests


class Request(Generic[T]):
    """A request, and the decoder of its answer. No representation shows its words, which may be secrets."""

    __slots__ = ("_decode", "is_question", "line", "verb")

    def __init__(
        self, verb: str, arguments: list[str], decode: Callable[[Answer], T], *, is_question: bool = False
    ) -> None:
        #: The words of the verb.
        self.verb = verb
        #: The line to send, with its line feed.
        self.line = _words.request([*verb.split(" "), *arguments])
        #: Whether repeating the request is harmless, so that it is sent once more if the connection ends.
        self.is_question = is_question
        self._decode = decode

    def __repr__(self) -> str:
        return f"<Request: {self.verb}>"

    def value(self, answer: Answer) -> T:
        """The value of an answer.

        :raises Refused: if the daemon refused the request.
        :raises BrokenAnswer: if it is no answer to this request.
        """
        if answer.final.kind == "ERR":
            raise refusal(*answer.final.words)
        return self._decode(answer)


def operands(*values: object) -> list[str]:
    """The words of operands; None is left out."""
    return [_words.operand(_written(value)) for value in values if value is not None]


def attributes(values: Mapping[str, object]) -> list[str]:
    """The words of attributes. None and False are left out, and a mapping is attributes of that prefix."""
    made = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            made += [_words.attribute(f"{name}{end}", _written(it)) for end, it in value.items()]
        elif value is not None and value is not False:
            made.append(_words.attribute(name, _written(value)))
    return made


def _written(value: object) -> str:
    if value is True:
        return "yes"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z"
    return str(value)
