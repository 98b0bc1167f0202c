"""What the credential helpers of git and docker share."""

from __future__ import annotations

from ._requests import Request, T
from .client import Client
from .errors import IdentityError, NotFound

#: The longest input in bytes. A secret has 32 KiB at most.
INPUT_BYTES = 1 << 18


class Failure(Exception):
    """A failure with a text for people, which has no secret."""


def ask(request: Request[T]) -> T | None:
    """The answer of the daemon; None for `not-found`.

    :raises Failure: for any other error.
    """
    try:
        with Client() as client:
            return client.ask(request)
    except NotFound:
        return None
    except IdentityError as error:
        raise Failure(str(error)) from None
