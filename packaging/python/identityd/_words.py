"""The words and lines of the protocol (identityd-protocol(7), Grammar)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .errors import BrokenAnswer, InvalidRequest, TooLong

#: The maximum length of a request in bytes, its line feed included.
REQUEST_BYTES = 98_304
#: The maximum number of words in a request.
REQUEST_WORDS = 256

_CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
_NAME = "[A-Za-z][A-Za-z0-9._-]*"
_BARE = re.compile(f'[^ "\\\\{_CONTROL}]+')
_ATTRIBUTE = re.compile(f"{_NAME}=")
_LATE_CONTROL = re.compile("[\\x7f-\\x9f]")
_WORD = re.compile(
    f'(?:(?P<name>{_NAME})=)?(?:"(?P<string>(?:[^"\\\\{_CONTROL}]|\\\\.)*)"|(?P<bare>[^ "\\\\{_CONTROL}]*))(?: +|$)'
)


def value(text: str) -> str:
    """Returns a value as a word: bare if possible, else as a JSON string."""
    if _BARE.fullmatch(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _LATE_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def operand(text: str) -> str:
    """Returns an operand as a word, so that it is not taken for an attribute."""
    return json.dumps(text, ensure_ascii=False) if _BARE.fullmatch(text) and _ATTRIBUTE.match(text) else value(text)


def attribute(name: str, text: str) -> str:
    """Returns an attribute as a word.

    :raises InvalidRequest: if the name cannot be one.
    """
    if not re.fullmatch(_NAME, name):
        raise InvalidRequest("syntax", "the name of an attribute has only ASCII letters, digits, '.', '_' and '-'")
    return f"{name}={value(text)}"


def request(words: Iterable[str]) -> bytes:
    """Joins words, which are encoded already, to a request line.

    :raises InvalidRequest: if a word has a NUL or a lone surrogate.
    :raises TooLong: if the line exceeds the bounds of the protocol.
    """
    words = list(words)
    line = b""
    try:
        line = " ".join(words).encode() + b"\n"
    except UnicodeEncodeError:
        # The error has the text, which may be private, so it must not become part of the next one.
        pass
    if not line or any("\\u0000" in word.replace("\\\\", "") for word in words):
        raise InvalidRequest("syntax", "a value cannot have a NUL, and has to be valid Unicode")
    if len(line) > REQUEST_BYTES or len(words) > REQUEST_WORDS:
        raise TooLong("too-long", f"a request has at most {REQUEST_WORDS} words and {REQUEST_BYTES} bytes")
    return line


@dataclass(frozen=True, slots=True)
class Line:
    """A line from the daemon. The values may be secrets, so no representation shows them.

    `kind` is `*`, `OK`, `ERR` or `EVENT`. The words of an `ERR` are its code and its text. Names are in lower case.
    """

    kind: str
    words: tuple[str, ...] = field(repr=False)
    attributes: dict[str, str] = field(repr=False, default_factory=dict)


def _unquoted(text: str) -> str | None:
    """Decodes the content of a JSON string; None if it is none, or has a NUL or a lone surrogate."""
    if "\\" not in text:
        return text
    try:
        decoded = json.loads(f'"{text}"')
        decoded.encode()
    except ValueError:
        return None
    return str(decoded) if "\0" not in decoded else None


def line(received: bytes) -> Line:
    """Parses a line, given without its line feed.

    :raises BrokenAnswer: if it is no line of the protocol. The error does not repeat it.
    """
    text = received.removesuffix(b"\r").decode(errors="surrogateescape")
    kind, _, rest = text.partition(" ")
    parsed: Line | None = None
    if kind == "ERR":
        code, _, explanation = rest.partition(" ")
        if re.fullmatch("[a-z][a-z0-9-]*", code):
            parsed = Line(kind, (code, explanation.encode(errors="replace").decode()))
    elif kind in ("*", "OK", "EVENT") and not re.search("[\udc80-\udcff]", text):
        parsed = _content(kind, rest)
    if parsed is None:
        raise BrokenAnswer("the daemon sent a line that violates the protocol")
    return parsed


def _content(kind: str, text: str) -> Line | None:
    words: list[str] = []
    attributes: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _WORD.match(text, place)
        if found is None or found.end() == place:
            return None
        place = found.end()
        decoded = found["bare"] if found["string"] is None else _unquoted(found["string"])
        if decoded is None or (not decoded and found["string"] is None and found["name"] is None):
            return None
        if found["name"] is None:
            words.append(decoded)
        elif found["name"].lower() in attributes:
            return None
        else:
            attributes[found["name"].lower()] = decoded
    return Line(kind, tuple(words), attributes)
