"""git-credential-identityd(1): a credential helper of git (gitcredentials(7)) that keeps passwords as items."""

from __future__ import annotations

import hmac
import sys
import time
from urllib.parse import quote

from . import _credentials, verbs
from ._credentials import Failure, ask
from .errors import IdentityError

#: The service of the items. Their account is a URL, and their attributes are its parts.
_SERVICE = "git-credential"
#: The lines that are understood. git may send others in any version.
_KNOWN = ("protocol", "host", "path", "username", "password", "password_expiry_utc")

Description = dict[str, bytes]


def _description(data: bytes) -> Description:
    """The lines of a description. Lines with other names are left out.

    :raises Failure: if a line has no `=`.
    """
    found = {}
    for line in data.split(b"\n"):
        if not line:
            break
        name, mark, value = line.partition(b"=")
        if not mark:
            raise Failure("git sent a line without '='")
        if name.decode(errors="replace") in _KNOWN:
            found[name.decode()] = value
    return found


def _text(value: bytes) -> str:
    """The text of a value that is no secret.

    :raises Failure: if it is no UTF-8.
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    raise Failure("git sent a name that is not in UTF-8")


def _parts(description: Description) -> dict[str, str]:
    """The scope of a description: the attributes of an item, and the conditions of a search."""
    names = ("protocol", "host", "path", "username")
    return {name: _text(description[name]) for name in names if name in description}


def _account(parts: dict[str, str]) -> str:
    """The account of an item: a URL that no other protocol, host, path and username have."""
    user, host, path = (
        quote(parts.get(name, ""), safe=safe) for name, safe in (("username", ""), ("host", ":[]"), ("path", "/~"))
    )
    return f"{quote(parts['protocol'], safe='')}://{user}@{host}" + (f"/{path}" if "path" in parts else "")


def _is_expired(expiry: str | None) -> bool:
    return expiry is not None and expiry.isascii() and expiry.isdigit() and int(expiry[:20]) <= time.time()


def _fitting(wanted: dict[str, str]) -> list[verbs.ItemDescription]:
    """The items that a description means. One without a host means only those without a host, and never any host."""
    found = ask(verbs.item_find(service=_SERVICE, attributes=wanted)) or ()
    return [item for item in found if "host" in wanted or not item.attributes.get("host")]


def get(description: Description) -> bytes:
    """The lines of the credential that fits; none if there is none, or only expired ones.

    Without a path in the description, the credential of any path fits, as with git's own helpers, and that of no path
    first.
    """
    wanted = _parts(description)
    if "protocol" not in wanted or not ("host" in wanted or "path" in wanted):
        return b""
    for item in sorted(_fitting(wanted), key=lambda item: ("path" in item.attributes, item.account)):
        expiry = item.attributes.get("password_expiry_utc")
        read = None if _is_expired(expiry) else ask(verbs.item_read(service=_SERVICE, account=item.account))
        if read is None:
            continue
        lines = [("username", item.attributes.get("username", "").encode()), ("password", read.data)]
        lines += [("password_expiry_utc", expiry.encode())] if expiry else []
        if any(b"\n" in value or b"\0" in value for _, value in lines):
            raise Failure("an item has a line break, which git does not take; delete it with 'identityctl item delete'")
        return b"".join(name.encode() + b"=" + value + b"\n" for name, value in lines)
    return b""


def store(description: Description) -> bytes:
    """Adds or replaces a credential. An incomplete description, and an expired one, are left out."""
    parts = _parts(description)
    expiry = _text(description.get("password_expiry_utc", b"")) or None
    if not {"protocol", "username"} <= parts.keys() or "password" not in description or _is_expired(expiry):
        return b""
    if "host" not in parts and "path" not in parts:
        return b""
    ask(
        verbs.item_put(
            service=_SERVICE,
            account=_account(parts),
            data=description["password"],
            label=f"Password of {parts['username'] or 'git'} for {parts.get('host') or parts.get('path')}",
            attributes=parts | ({"password_expiry_utc": expiry} if expiry else {}),
        )
    )
    return b""


def erase(description: Description) -> bytes:
    """Deletes the credentials that fit; if the description has a password, only those that have it, too."""
    wanted = _parts(description)
    if "protocol" not in wanted or not ("host" in wanted or "path" in wanted):
        return b""
    for item in _fitting(wanted):
        if "password" in description:
            read = ask(verbs.item_read(service=_SERVICE, account=item.account))
            if read is None or not hmac.compare_digest(read.data, description["password"]):
                continue
        ask(verbs.item_delete(service=_SERVICE, account=item.account))
    return b""


def main() -> int:
    """Carries out the operation that the command line names. Unknown ones do nothing, as git demands."""
    operation = {"get": get, "store": store, "erase": erase}.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if len(sys.argv) != 2:
        print("usage: git credential-identityd get|store|erase", file=sys.stderr)
        return 64
    if operation is None:
        return 0
    try:
        data = sys.stdin.buffer.read(_credentials.INPUT_BYTES + 1)
        if len(data) > _credentials.INPUT_BYTES:
            raise Failure("git sent too much")
        sys.stdout.buffer.write(operation(_description(data)))
        sys.stdout.flush()
    except (Failure, IdentityError) as failure:
        print(f"git-credential-identityd: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    return 0
