"""docker-credential-identityd(1): a credential helper of docker, podman and skopeo that keeps passwords as items."""

from __future__ import annotations

import json
import sys

from . import _credentials, verbs
from ._credentials import Failure, ask
from .errors import IdentityError

#: The service of the items. Their account is the URL of a registry, and an attribute is the name of the user.
_SERVICE = "docker-credential"
#: Texts by which docker recognizes failures (docker-credential-helpers, credentials/error.go).
NOT_FOUND = "credentials not found in native keychain"
NO_URL = "no credentials server URL"
NO_USERNAME = "no credentials username"


def _server(data: bytes) -> str:
    """The URL of a registry, which is the input of `get` and `erase`.

    :raises Failure: if it is empty, or no UTF-8.
    """
    try:
        url = data.decode().replace("\n", "").replace("\r", "").strip()
    except UnicodeDecodeError:
        raise Failure("the server URL is not in UTF-8") from None
    if not url:
        raise Failure(NO_URL)
    return url


def store(data: bytes) -> str:
    """Adds or replaces the credential of a registry."""
    given: object = None
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        # The error has the input, so it must not become part of the next one.
        pass
    if not isinstance(given, dict):
        raise Failure("the input is no JSON object")
    url, username, secret = (given.get(name, "") for name in ("ServerURL", "Username", "Secret"))
    if not (isinstance(url, str) and isinstance(username, str) and isinstance(secret, str)):
        raise Failure("ServerURL, Username and Secret have to be strings")
    if not url:
        raise Failure(NO_URL)
    if not username:
        raise Failure(NO_USERNAME)
    encoded: bytes | None = None
    try:
        encoded = secret.encode()
    except UnicodeEncodeError:
        # The error has the secret.
        pass
    if encoded is None:
        raise Failure("the secret is no valid Unicode")
    ask(
        verbs.item_put(
            service=_SERVICE,
            account=url,
            data=encoded,
            label=f"Password of {username} for {url}",
            attributes={"username": username},
        )
    )
    return ""


def get(data: bytes) -> str:
    """The credential of a registry."""
    url = _server(data)
    item = ask(verbs.item_read(service=_SERVICE, account=url))
    if item is None:
        raise Failure(NOT_FOUND)
    secret: str | None = None
    try:
        secret = item.data.decode()
    except UnicodeDecodeError:
        # The error has the secret.
        pass
    if secret is None:
        raise Failure("the item is no text in UTF-8; read it with 'identityctl item read'")
    return json.dumps({"ServerURL": url, "Username": item.attributes.get("username", ""), "Secret": secret}) + "\n"


def erase(data: bytes) -> str:
    """Deletes the credential of a registry."""
    if ask(verbs.item_delete(service=_SERVICE, account=_server(data))) is None:
        raise Failure(NOT_FOUND)
    return ""


def list_all(_: bytes) -> str:
    """The names of the users, by the URLs of their registries."""
    found = ask(verbs.item_find(service=_SERVICE)) or ()
    return json.dumps({item.account: item.attributes.get("username", "") for item in found}) + "\n"


def version(_: bytes) -> str:
    """The name of the helper."""
    return "docker-credential-identityd (identityd) protocol 1\n"


def main() -> int:
    """Carries out the operation that the command line names. Failures go to standard output, which docker reads."""
    operations = {"store": store, "get": get, "erase": erase, "list": list_all, "version": version}
    try:
        if len(sys.argv) != 2:
            raise Failure("Usage: docker-credential-identityd <store|get|erase|list|version>")
        if sys.argv[1] not in operations:
            raise Failure(f"Unknown credential action `{sys.argv[1]}`")
        has_input = sys.argv[1] in ("store", "get", "erase")
        data = sys.stdin.buffer.read(_credentials.INPUT_BYTES + 1) if has_input else b""
        if len(data) > _credentials.INPUT_BYTES:
            raise Failure("the input is too long")
        sys.stdout.write(operations[sys.argv[1]](data))
        sys.stdout.flush()
    except (Failure, IdentityError) as failure:
        print(failure)
        return 1
    except BrokenPipeError:
        return 1
    return 0
