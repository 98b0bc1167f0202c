"""A broker and services of the fleet, for the tests of the page."""

import os, pathlib, socket, subprocess

from browser import PROGRAMS, until

FLEET = "/run/identity-fleet/identity-fleet.sock"


class Broker:
    """A Mosquitto on a loopback port of its own."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.configuration = pathlib.Path(folder) / "mosquitto.conf"
        self.configuration.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\n")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(["/usr/sbin/mosquitto", "-c", self.configuration], stderr=subprocess.DEVNULL)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Fleet:
    """A service of the fleet beside a daemon."""

    def __init__(self, daemon, broker, path=FLEET):
        self.daemon, self.socket = daemon, path
        self.configuration = daemon.folder / "identity-fleet.conf"
        self.configuration.write_text(f"[Fleet]\nBroker=mqtt://127.0.0.1:{broker.port}\nSpread=0\n")
        self.log = daemon.folder / "fleet.log"
        self.process = None

    def start(self):
        options = ["--daemon", self.daemon.socket, "--socket", self.socket, "--config", self.configuration]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([PROGRAMS / "identity-fleet", *options], stderr=log)
        until(lambda: self.run("fleet", "status").returncode == 0, "the start of the service")
        return self

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def run(self, *words, text=None):
        """Runs the client."""
        sockets = {"IDENTITYD_SOCKET": str(self.daemon.socket), "IDENTITY_FLEET_SOCKET": str(self.socket)}
        command = [PROGRAMS / "identityctl", *words]
        return subprocess.run(command, env=os.environ | sockets, input=text, capture_output=True, text=True)

    def wait(self, row):
        """Waits for a row of `fleet status`."""
        until(lambda: row in self.run("fleet", "status").stdout.split("\n"), row)
