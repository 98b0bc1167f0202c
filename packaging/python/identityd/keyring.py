"""A backend for the package keyring, so that programs on it keep their passwords in identityd.

A password is an item in the access group of the app that identityd takes the program for (identityd-protocol(7), WHO IS
ASKING): programs of one user that run in no service share them.
"""

from __future__ import annotations

from keyring.backend import KeyringBackend
from keyring.credentials import SimpleCredential
from keyring.errors import InitError, KeyringError, KeyringLocked, PasswordDeleteError, PasswordSetError

from . import errors, verbs
from .client import Client

#: The beginning of the items' service, so that no program's own items are replaced.
_SERVICE = "keyring:"
#: The time limit of the question whether the daemon answers, in seconds.
_PATIENCE = 2.0


class _Priority:
    """The priority of the backend: an attribute of the class, which raises RuntimeError if no daemon answers."""

    def __get__(self, _: object, __: type | None = None) -> float:
        try:
            with Client(timeout=_PATIENCE) as client:
                client.ask(verbs.ping())
        except errors.IdentityError as error:
            raise RuntimeError(f"identityd cannot be used: {error}") from None
        # Below the keyrings of a desktop (3 and more), above files without encryption (0.5).
        return 2.0


class Keyring(KeyringBackend):
    """Passwords as items of identityd."""

    priority = _Priority()

    def get_password(self, service: str, username: str) -> str | None:
        """The password; None if there is none.

        :raises KeyringError: if identityd refuses, or the item is no text.
        """
        try:
            with Client() as client:
                data = client.ask(verbs.item_read(service=_SERVICE + service, account=username)).data
        except errors.NotFound:
            return None
        except errors.IdentityError as error:
            raise _failure(error, KeyringError) from None
        return _text(data)

    def set_password(self, service: str, username: str, password: str) -> None:
        """Adds or replaces a password.

        :raises PasswordSetError: if identityd refuses. Service and username have at most 247 and 255 bytes, and are not
            empty.
        """
        try:
            request = verbs.item_put(
                service=_SERVICE + service,
                account=username,
                data=_bytes(password),
                label=f"Password of {username} for {service}",
            )
            with Client() as client:
                client.ask(request)
        except errors.IdentityError as error:
            raise _failure(error, PasswordSetError) from None

    def delete_password(self, service: str, username: str) -> None:
        """Deletes a password.

        :raises PasswordDeleteError: if there is none, or identityd refuses.
        """
        try:
            with Client() as client:
                client.ask(verbs.item_delete(service=_SERVICE + service, account=username))
        except errors.NotFound:
            raise PasswordDeleteError("there is no such password") from None
        except errors.IdentityError as error:
            raise _failure(error, PasswordDeleteError) from None

    def get_credential(self, service: str, username: str | None) -> SimpleCredential | None:
        """The password of a user, or of any user of the service; None if there is none.

        :raises KeyringError: if identityd refuses, or the item is no text.
        """
        if username is None:
            try:
                with Client() as client:
                    username = client.ask(verbs.item_find(service=_SERVICE + service, limit="one"))[0].account
            except errors.NotFound:
                return None
            except errors.IdentityError as error:
                raise _failure(error, KeyringError) from None
        password = self.get_password(service, username)
        return None if password is None else SimpleCredential(username, password)


def _failure(error: errors.IdentityError, usual: type[Exception]) -> Exception:
    """The error of keyring for one of the client."""
    kinds = {errors.Unavailable: KeyringLocked, errors.Unreachable: InitError}
    return kinds.get(type(error), usual)(str(error))


# The errors of the codec have the password, so they must not become part of the next one.


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    raise KeyringError("the item is no text in UTF-8; read it with 'identityctl item read'")


def _bytes(password: str) -> bytes:
    try:
        return password.encode()
    except UnicodeEncodeError:
        pass
    raise PasswordSetError("the password is no valid Unicode")
