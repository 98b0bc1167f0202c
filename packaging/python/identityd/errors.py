"""The reasons why a request fails, or why following events ends."""

from __future__ import annotations


def visible(text: str) -> str:
    """Returns the text with control characters and other hidden ones escaped, so that a terminal shows it unharmed."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


class IdentityError(Exception):
    """Any failure of a request. No message contains a secret."""

    #: Whether the request changed nothing and may succeed if it is repeated a little later.
    is_worth_retrying = False


class Refused(IdentityError):
    """The daemon refused the request. Nothing was changed, unless the code is `unknown`.

    A code that this release does not know has this class, any other one a class below it.
    """

    #: The code in identityd-protocol(7), for programs. It never changes.
    code: str
    #: The explanation, for people. It may change.
    text: str

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return visible(f"{self.text} ({self.code})")


class InvalidRequest(Refused, ValueError):
    """The request line is malformed; `syntax`. The client refuses such a request, too, and sends nothing then."""


class TooLong(Refused, ValueError):
    """The request line is too long; `too-long`. The client refuses such a request, too, and sends nothing then."""


class UnknownVerb(Refused):
    """The daemon does not know the verb; `unknown-verb`."""


class BadArgument(Refused, ValueError):
    """An operand or attribute is missing, unknown, given twice, or out of its range; `bad-argument`."""


class InvalidUUID(Refused, ValueError):
    """A value that must be a UUID is not one; `invalid-uuid`."""


class Denied(Refused):
    """The program lacks a right. The text names the caller and the missing grant; `denied`."""


class NotFound(Refused, LookupError):
    """Nothing matches; `not-found`."""


class Exists(Refused):
    """An item with this key exists; `exists`."""


class Conflict(Refused):
    """The current state does not allow the request; `conflict`."""


class Limit(Refused):
    """A quota is used up, or a value is too long; `limit`."""


class Gone(Refused):
    """The events after the number are no longer kept, or the number belongs to another epoch; `gone`."""


class Busy(Refused):
    """There are too many connections, or the daemon is short of descriptors or memory; `busy`."""

    is_worth_retrying = True


class NoSpace(Refused):
    """The disk is full. Nothing was changed; `no-space`."""

    is_worth_retrying = True


class ReadOnly(Refused):
    """The store cannot be written now. Reads still work; `read-only`."""

    is_worth_retrying = True


class Unavailable(Refused):
    """A required part is missing, such as a key, or the startup has not finished; `unavailable`."""

    is_worth_retrying = True


class InternalFault(Refused):
    """The daemon or its store has a fault, which is in the journal; `internal`."""


class UnknownOutcome(Refused):
    """The disk failed at the end of the change. Read the value before you repeat the change; `unknown`."""


#: The class of each code that this release knows.
CLASSES: dict[str, type[Refused]] = {
    "syntax": InvalidRequest,
    "too-long": TooLong,
    "unknown-verb": UnknownVerb,
    "bad-argument": BadArgument,
    "invalid-uuid": InvalidUUID,
    "denied": Denied,
    "not-found": NotFound,
    "exists": Exists,
    "conflict": Conflict,
    "limit": Limit,
    "gone": Gone,
    "busy": Busy,
    "no-space": NoSpace,
    "read-only": ReadOnly,
    "unavailable": Unavailable,
    "internal": InternalFault,
    "unknown": UnknownOutcome,
}


def refusal(code: str, text: str) -> Refused:
    """Makes the error of a code."""
    return CLASSES.get(code, Refused)(code, text)


class Unreachable(IdentityError, ConnectionError):
    """No daemon listens at the path, or the system refused the connection. Nothing was sent."""

    is_worth_retrying = True


class Untrusted(IdentityError):
    """The daemon at the path may belong to another user. Nothing was sent."""


class ConnectionLost(IdentityError, ConnectionError):
    """The connection ended before the answer. A change may or may not have been made.

    A request that only reads was sent once more before this error.
    """


class BrokenAnswer(IdentityError):
    """The daemon sent something that is not an answer to the request. A change may or may not have been made."""


class TimedOut(IdentityError, TimeoutError):
    """The answer did not arrive in time. A change may or may not have been made."""
