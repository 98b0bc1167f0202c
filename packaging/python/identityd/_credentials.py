"""The parts of the credential helpers that git and docker have in common."""

from __future__ import annotations

from ._requests import Request, T
from .client import Client
from .errors import NotFound

#: The longest input in bytes. A secret has 64 KiB at most.
INPUT_BYTES = 1 << 18


class Failure(Exception):
    """A failure with a text for people, which has no secret."""


def ask(request: Request[T]) -> T | None:
    """The answer of the daemon; None for `not-found`.

    :raises IdentityError: for any other error.
    """
    try:
        with Client() as client:
            return client.ask(request)
    except NotFound:
        return None
