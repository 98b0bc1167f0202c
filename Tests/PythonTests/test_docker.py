#!/usr/bin/python3
"""The credential helper of docker, with docker's own client, with skopeo, and with a registry on loopback.

Neither client needs a daemon of containers: without one, `docker login` asks the registry itself.
"""

import json, os, socket, subprocess, unittest

from support import DaemonCase, until

from identityd import verbs

# Debian's client, of the package docker.io or docker-cli.
DOCKER = "/usr/bin/docker"
PASSWORD = 'hunter2 "\u00e4'


class DockerTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.installed = self.install()
        self.folder = self.daemon.folder
        # As docker has it: one helper for all registries.
        (self.folder / ".docker").mkdir()
        (self.folder / ".docker/config.json").write_text(json.dumps({"credsStore": "identityd"}))
        # No daemon of docker may answer instead of the client.
        self.installed["DOCKER_HOST"] = f"unix://{self.folder}/none"

    def helper(self, operation, text=""):
        return self.run_program("docker-credential-identityd", operation, input=text, **self.installed)

    def registry(self):
        """Starts Debian's registry with one user, and returns its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        secrets, configuration = self.folder / "htpasswd", self.folder / "registry.yml"
        made = subprocess.run(["htpasswd", "-niB", "alice"], input=PASSWORD, text=True, capture_output=True, check=True)
        secrets.write_text(made.stdout)
        configuration.write_text(
            json.dumps(
                {
                    "version": 0.1,
                    "storage": {"filesystem": {"rootdirectory": str(self.folder / "images")}},
                    "http": {"addr": address},
                    "auth": {"htpasswd": {"realm": "registry", "path": str(secrets)}},
                }
            )
        )
        process = subprocess.Popen(
            ["docker-registry", "serve", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def answers():
            with socket.socket() as connection:
                host, _, port = address.partition(":")
                return connection.connect_ex((host, int(port))) == 0

        until(answers, "the start of the registry")
        return address

    def test_docker_logs_in_and_out(self):
        if not os.path.exists(DOCKER):
            self.skipTest("docker.io is not installed")
        address = self.registry()
        login = (DOCKER, "login", "--username", "alice", "--password-stdin", address)
        status, told, errors = self.run_program(*login, input="wrong", **self.installed)
        self.assertNotEqual(status, 0, told)
        self.assertEqual(self.helper("list"), (0, "{}\n", ""))
        status, told, errors = self.run_program(*login, input=PASSWORD, **self.installed)
        self.assertEqual(status, 0, errors)
        self.assertIn("Login Succeeded", told)
        self.assertNotIn("unencrypted", errors)
        (item,) = self.client.ask(verbs.item_find(service="docker-credential"))
        self.assertEqual((item.account, item.attributes), (address, {"username": "alice"}))
        self.assertNotIn("hunter2", (self.folder / ".docker/config.json").read_text())
        # The client has the registry's password now: the registry has no such image, and tells only users that.
        inspect = (DOCKER, "manifest", "inspect", "--insecure", f"{address}/none:1")
        self.assertIn("no such manifest", self.run_program(*inspect, **self.installed)[2])
        status, told, errors = self.run_program(DOCKER, "logout", address, **self.installed)
        self.assertEqual((status, errors), (0, ""), told)
        self.assertEqual(self.helper("list"), (0, "{}\n", ""))
        self.assertIn("no basic auth credentials", self.run_program(*inspect, **self.installed)[2])

    def test_skopeo_logs_in_and_copies_with_the_password(self):
        address = self.registry()
        configuration = self.folder / "auth.json"
        configuration.write_text(json.dumps({"credHelpers": {address: "identityd"}}))
        # An image without content, as a folder.
        image = self.folder / "image"
        image.mkdir()
        (image / "version").write_text("Directory Transport Version: 1.1\n")
        blob = b'{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"config":{}}'
        digest = subprocess.run(["sha256sum"], input=blob, capture_output=True, check=True).stdout.decode()[:64]
        (image / digest).write_bytes(blob)
        (image / "manifest.json").write_text(
            json.dumps(
                {
                    "schemaVersion": 2,
                    "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                    "layers": [],
                    "config": {
                        "mediaType": "application/vnd.docker.container.image.v1+json",
                        "size": len(blob),
                        "digest": f"sha256:{digest}",
                    },
                }
            )
        )
        skopeo = {**self.installed, "REGISTRY_AUTH_FILE": str(configuration), "XDG_RUNTIME_DIR": str(self.folder)}
        copy = (
            "skopeo",
            "copy",
            "--insecure-policy",
            "--dest-tls-verify=false",
            f"dir:{image}",
            f"docker://{address}/empty:1",
        )
        self.assertNotEqual(self.run_program(*copy, **skopeo)[0], 0)
        login = ("skopeo", "login", "--tls-verify=false", "--username", "alice", "--password-stdin", address)
        status, told, errors = self.run_program(*login, input=PASSWORD, **skopeo)
        self.assertEqual(status, 0, told + errors)
        self.assertNotIn("hunter2", configuration.read_text())
        self.assertEqual(json.loads(self.helper("list")[1]), {address: "alice"})
        status, told, errors = self.run_program(*copy, **skopeo)
        self.assertEqual(status, 0, told + errors)
        status, told, errors = self.run_program("skopeo", "logout", address, **skopeo)
        self.assertEqual(status, 0, told + errors)
        self.assertEqual(self.helper("list"), (0, "{}\n", ""))

    def test_the_protocol_of_helpers(self):
        url = "https://registry.example.org/v1/"
        missing = (1, "credentials not found in native keychain\n", "")
        self.assertEqual(self.helper("get", url), missing)
        self.assertEqual(self.helper("erase", url), missing)
        self.assertEqual(self.helper("list"), (0, "{}\n", ""))
        for user in ("alice", "bob"):
            stored = {"ServerURL": url, "Username": user, "Secret": PASSWORD}
            self.assertEqual(self.helper("store", json.dumps(stored)), (0, "", ""))
            status, told, errors = self.helper("get", url + "\n")
            self.assertEqual((status, json.loads(told), errors), (0, stored, ""))
        self.assertEqual(self.helper("list"), (0, json.dumps({url: "bob"}) + "\n", ""))
        self.assertEqual(self.helper("erase", url), (0, "", ""))
        self.assertEqual(self.helper("get", url), missing)
        self.assertEqual(self.helper("get", " \n"), (1, "no credentials server URL\n", ""))
        self.assertEqual(
            self.helper("store", '{"Username":"a","Secret":"hunter2"}'), (1, "no credentials server URL\n", "")
        )
        self.assertEqual(
            self.helper("store", '{"ServerURL":"a","Secret":"hunter2"}'), (1, "no credentials username\n", "")
        )
        self.assertEqual(self.helper("frob"), (1, "Unknown credential action `frob`\n", ""))
        self.assertEqual(self.helper("version")[0], 0)

    def test_no_failure_shows_a_password(self):
        for text in (
            '{"ServerURL":"a","Username":"b","Secret":"hunter2',
            '["hunter2"]',
            '"hunter2"',
            '{"Secret":["hunter2"]}',
            json.dumps({"ServerURL": "a", "Username": "b", "Secret": "hunter2" * 10_000}),
            json.dumps({"ServerURL": "a", "Username": "b", "Secret": "hunter2" * 12_000}),
            json.dumps({"ServerURL": "a\0", "Username": "b", "Secret": "hunter2"}),
            '["hunter2",' + "[" * 50_000,
            '{"ServerURL":"a","Username":"b","Secret":"hunter2\\ud800"}',
            '"hunter2' * 50_000,
        ):
            status, told, errors = self.helper("store", text)
            self.assertEqual((status, errors), (1, ""))
            self.assertEqual(told.count("\n"), 1, told)
            self.assertNotIn("hunter2", told)
        self.client.ask(verbs.item_put(service="docker-credential", account="a", data=b"hunter2\xff"))
        status, told, errors = self.helper("get", "a")
        self.assertEqual((status, errors), (1, ""))
        self.assertNotIn("hunter2", told)
        self.daemon.end()
        status, told, errors = self.helper("get", "a")
        self.assertIn("no identityd at", told)


if __name__ == "__main__":
    unittest.main()
