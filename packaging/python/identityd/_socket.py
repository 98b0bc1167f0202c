"""The daemon's socket, and the users whose daemon a client accepts there."""

from __future__ import annotations

import os
import pwd
import socket
import stat
import struct
from typing import Literal

from .errors import Unreachable, Untrusted

#: The socket of the system's daemon.
SYSTEM_PATH = "/run/identityd/identityd.sock"

#: The users whose daemon a client accepts: root, the user identityd and its own user, or any user without checks.
Trust = Literal["system-or-own", "anybody"]


def default_path() -> str:
    """The path in `IDENTITYD_SOCKET`, else the system's socket, else the user's own one if only that exists.

    Root has no daemon of its own, and can inherit `XDG_RUNTIME_DIR` of another user.
    """
    if path := os.environ.get("IDENTITYD_SOCKET"):
        return path
    own = _own_path()
    if own is not None and os.geteuid() != 0 and os.path.exists(own) and not os.path.exists(SYSTEM_PATH):
        return own
    return SYSTEM_PATH


def _own_path() -> str | None:
    """The socket of this user's own daemon; None without a run-time directory."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(folder, "identityd/identityd.sock") if os.path.isabs(folder) else None


def _absence(path: str, error: OSError) -> str:
    """The reason why no daemon can be reached, and the remedy."""
    if isinstance(error, PermissionError):
        return f"this user may not use {path}; run 'identityctl check', which names the file mode that forbids it"
    manager = "systemctl --user" if path == _own_path() else "systemctl"
    return (
        f"no identityd at {path} ({error.strerror or error}); run '{manager} restart identityd.socket',"
        " or name another socket in IDENTITYD_SOCKET"
    )


def connect(path: str, trust: Trust) -> socket.socket | None:
    """Connects without waiting, and checks the owners. The socket does not block.

    :return: None if the daemon's accept queue is full.
    :raises Unreachable: if no daemon listens there, or the system refuses the connection.
    :raises Untrusted: if the daemon may be another user's.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        try:
            made.connect(path)
        except BlockingIOError:
            made.close()
            return None
        if trust == "system-or-own" and (fault := _fault(path, made)) is not None:
            raise Untrusted(f"nothing was sent to {path}: {fault}; name another socket in IDENTITYD_SOCKET")
    except OSError as error:
        made.close()
        raise Unreachable(_absence(path, error)) from error
    except BaseException:
        made.close()
        raise
    return made


def _fault(path: str, connected: socket.socket) -> str | None:
    """The first owner of the listener, the socket and its folder that is not trusted; None if there is none."""
    stranger = "who is neither root nor identityd nor this user"
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, listener, _ = struct.unpack("3I", credentials)
    if not _is_trusted(listener):
        return f"the process that listens there runs as uid {listener}, {stranger}"
    for place in dict.fromkeys([os.path.abspath(path), os.path.realpath(path)]):
        folder = os.path.dirname(place)
        owner, status = os.lstat(place).st_uid, os.stat(folder)
        if not _is_trusted(owner):
            return f"{place} belongs to uid {owner}, {stranger}"
        if not _is_trusted(status.st_uid):
            return f"the directory {folder} belongs to uid {status.st_uid}, {stranger}"
        # The sticky bit lets only the owner of a file, or of the folder, replace the file.
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"every user can replace the socket, because the directory {folder} is world-writable"
    return None


def _is_trusted(user: int) -> bool:
    if user in (0, os.geteuid()) or user == _unnamed_user():
        return True
    try:
        return user == pwd.getpwnam("identityd").pw_uid
    except KeyError:
        return False


def _unnamed_user() -> int | None:
    """The number of all users without a number in this user namespace, such as the host's root in a rootless container.

    The kernel does not tell them apart. None if all users have a number.
    """
    try:
        with open("/proc/self/uid_map") as file:
            named = sum(int(line.split()[2]) for line in file)
        if named >= 0xFFFF_FFFF:
            return None
        with open("/proc/sys/kernel/overflowuid") as file:
            return int(file.read())
    except (OSError, ValueError, IndexError):
        return None
