"""A resource detector for the SDK of OpenTelemetry, which `OTEL_EXPERIMENTAL_RESOURCE_DETECTORS=identityd` turns on.

It sets these attributes (OpenTelemetry's semantic conventions for resources):

- `host.id`: the device identifier that the app may see. It is the same for all apps that share it, and another one for
  an app whose manifest gives it an identifier of its own. It never is the machine-id.
- `service.instance.id`: an identifier of this process. A restart of the daemon keeps it, and each process of a service
  has another one, because the conventions want the workers of a service to be told apart.
- `device.id`: as `host.id`, but only with `IDENTITYD_OTEL_DEVICE_ID=yes` in the environment, because the conventions
  advise against it where a device is a person's.
"""

from __future__ import annotations

import os

from opentelemetry.sdk.resources import Resource, ResourceDetector

from . import verbs
from .client import Client
from .errors import IdentityError

#: The time limit of each request in seconds. The SDK gives up after five.
_PATIENCE = 2.0


class IdentityResourceDetector(ResourceDetector):
    """Detects the attributes that this module describes."""

    def is_process_dependent(self) -> bool:
        """Whether a forked process has another resource: always."""
        return True

    def detect(self) -> Resource:
        """The resource. It is empty if the daemon cannot be reached or refuses.

        :raises IdentityError: in that case, if the detector was made with `raise_on_error=True`.
        """
        try:
            with Client(timeout=_PATIENCE) as client:
                host = str(client.ask(verbs.get_device()).uuid)
                instance = str(client.ask(verbs.get_key(_process())).uuid)
        except IdentityError:
            if self.raise_on_error:
                raise
            return Resource({})
        attributes = {"host.id": host, "service.instance.id": instance}
        if os.environ.get("IDENTITYD_OTEL_DEVICE_ID", "").lower() == "yes":
            attributes["device.id"] = host
        return Resource(attributes)


def _process() -> str:
    """The name of this process within its session: its number, and its start, since numbers are used again."""
    # The kernel cuts the name of the program after 15 bytes, also within a character.
    with open("/proc/self/stat", "rb") as file:
        start = file.read().rpartition(b")")[2].split()[19].decode()
    return f"opentelemetry {os.getpid()} {start}"
