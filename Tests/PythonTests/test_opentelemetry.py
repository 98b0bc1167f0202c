#!/usr/bin/python3
"""The resource detector, with the SDK of OpenTelemetry. IDENTITYD_OPENTELEMETRY is the folder with its modules."""

import json, os, sys, unittest

from support import DaemonCase

from identityd import verbs

CODE = """
import json, os, sys
from opentelemetry.sdk.resources import Resource
def attributes():
    found = Resource.create().attributes
    return {name: found[name] for name in ("host.id", "service.instance.id", "device.id") if name in found}
found = [attributes(), attributes()]
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, json.dumps(attributes()).encode())
    os._exit(0)
os.wait()
print(json.dumps([*found, json.loads(os.read(reading, 4096))]))
"""


@unittest.skipUnless(
    "IDENTITYD_OPENTELEMETRY" in os.environ, "IDENTITYD_OPENTELEMETRY is not set: packaging/test sets it"
)
class OpenTelemetryTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.installed = self.install()
        self.installed["PYTHONPATH"] += f":{os.environ['IDENTITYD_OPENTELEMETRY']}"
        self.installed["OTEL_EXPERIMENTAL_RESOURCE_DETECTORS"] = "identityd"

    def resources(self, **environment):
        """The attributes of a process, the same again, and those of a process that it forks."""
        status, told, errors = self.run_program(sys.executable, "-c", CODE, **self.installed, **environment)
        self.assertEqual(status, 0, errors)
        return json.loads(told)

    def test_the_sdk_has_the_identifiers(self):
        device = str(self.client.ask(verbs.get_device()).uuid)
        first, again, forked = self.resources()
        self.assertEqual(first, again)
        self.assertEqual(set(first), {"host.id", "service.instance.id"})
        self.assertEqual((first["host.id"], forked["host.id"]), (device, device))
        other, _, _ = self.resources()
        instances = {one["service.instance.id"] for one in (first, forked, other)}
        self.assertEqual(len(instances), 3)
        for name in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
            with open(name) as file:
                self.assertNotIn(file.read().strip().replace("-", ""), json.dumps([first, forked]).replace("-", ""))

    def test_the_device_has_an_attribute_of_its_own_only_where_that_is_configured(self):
        first, _, _ = self.resources(IDENTITYD_OTEL_DEVICE_ID="yes")
        self.assertEqual(first["device.id"], first["host.id"])
        first, _, _ = self.resources(IDENTITYD_OTEL_DEVICE_ID="no")
        self.assertNotIn("device.id", first)

    def test_the_attributes_of_the_environment_come_before(self):
        first, _, _ = self.resources(OTEL_RESOURCE_ATTRIBUTES="host.id=mine")
        self.assertEqual(first["host.id"], "mine")

    def test_an_app_with_an_identifier_of_its_own_never_tells_that_of_the_device(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for a manifest")
        device = str(self.client.ask(verbs.get_device()).uuid)
        self.daemon.end()
        # A folder of manifests that only this daemon sees.
        manifest = "[App]\\nUser=games\\nDeviceIdentifier=app\\n"
        self.daemon.start(
            "unshare",
            "--mount",
            "sh",
            "-euc",
            "mount -t tmpfs tmpfs /run && mkdir -p /run/identityd/apps.d"
            f" && printf '{manifest}' >/run/identityd/apps.d/org.example.own.app && exec \"$@\"",
            "sh",
        )
        self.daemon.folder.chmod(0o755)
        mine, _, _ = self.resources()
        own, _, _ = self.resources(user="games", IDENTITYD_OTEL_DEVICE_ID="yes")
        self.assertEqual(mine["host.id"], device)
        self.assertEqual(own["host.id"], own["device.id"])
        self.assertNotEqual(own["host.id"], device)

    def test_without_a_daemon_the_sdk_goes_on(self):
        self.daemon.end()
        first, _, _ = self.resources()
        self.assertNotIn("host.id", first)
        code = "from identityd.opentelemetry import IdentityResourceDetector as D\nD(raise_on_error=True).detect()"
        status, _, errors = self.run_program(sys.executable, "-c", code, **self.installed)
        self.assertEqual(status, 1)
        self.assertIn("identityd.errors.Unreachable", errors)


if __name__ == "__main__":
    unittest.main()
