"""A client of identityd, which gives services of a device stable identifiers and keeps their secrets.

    from identityd import Client, verbs

    with Client() as client:
        device = client.ask(verbs.get_device()).uuid
        client.ask(verbs.item_put(service="mail", account="alice", data=b"secret"))
        for step in client.events("item"):
            ...

`identityd.verbs` has a function for each verb of identityd-protocol(7), and `identityd.aio.Client` the same methods for
asyncio. Errors have the classes of `identityd.errors`.
"""

from . import errors, verbs
from ._events import Event, Following, Gap, Interrupted, Step
from ._requests import Metric, Request
from ._socket import Trust
from .client import Client, Events
from .errors import IdentityError, Refused

__all__ = [
    "Client",
    "Event",
    "Events",
    "Following",
    "Gap",
    "IdentityError",
    "Interrupted",
    "Metric",
    "Refused",
    "Request",
    "Step",
    "Trust",
    "errors",
    "verbs",
]
