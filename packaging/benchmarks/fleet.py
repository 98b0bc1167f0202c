"""Measures how long a change at one device takes to an event at another device of its fleet.

    fleet.py FOLDER     the folder of identityd and identity-fleet

Starts three devices and a broker for each measurement: Mosquitto, and the nats-server in IDENTITYD_NATS_SERVER as a
cluster of three nodes. A device changes its name once a second, which is as often as the rules publish it at once. Exits
with status 1 if a target is missed.
"""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import uuid

CHANGES = 150
TARGETS = {50: 30, 99: 250}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait(what, condition):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    sys.exit(f"fleet.py: {what} not within a minute")


class Client:
    """A connection to a program with the line protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r", newline="\n")

    def ask(self, request):
        self.socket.sendall(f"{request}\n".encode())
        lines = [self.lines.readline()]
        while lines[-1].startswith("*"):
            lines.append(self.lines.readline())
        return "".join(lines)


class Measurement:
    """A broker and three devices."""

    def __init__(self, programs, folder, stack):
        self.programs, self.folder, self.stack = programs, folder, stack

    def start(self, *command):
        log = self.stack.enter_context(open(self.folder / "log", "ab"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def mosquitto(self):
        port = free_port()
        configuration = self.folder / "mosquitto.conf"
        configuration.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n")
        self.start("/usr/sbin/mosquitto", "-c", configuration)
        return [port]

    def cluster(self):
        ports = [free_port() for _ in range(3)]
        routes = [free_port() for _ in range(3)]
        for node, (port, route) in enumerate(zip(ports, routes)):
            others = ", ".join(f'"nats://127.0.0.1:{other}"' for other in routes)
            configuration = self.folder / f"{node}.conf"
            configuration.write_text(
                f'server_name: node{node}\nlisten: "127.0.0.1:-1"\n'
                f'jetstream {{ store_dir: "{self.folder}/{node}" }}\n'
                f'mqtt {{ listen: "127.0.0.1:{port}", stream_replicas: 3, no_auth_user: site }}\n'
                f'cluster {{ name: fleet, listen: "127.0.0.1:{route}", routes: [{others}] }}\n'
                "accounts { fleet { jetstream: enabled, users: [ { user: site, password: site } ] } }\n")
            self.start(os.environ["IDENTITYD_NATS_SERVER"], "--config", configuration)
            wait("a node", lambda: not socket.create_connection(("127.0.0.1", route)).close())
        return ports

    def device(self, name, ports):
        folder = self.folder / name
        folder.mkdir()
        (folder / "identityd.conf").write_text("")
        brokers = "".join(f"Broker=mqtt://127.0.0.1:{port}\n" for port in ports)
        (folder / "identity-fleet.conf").write_text(f"[Fleet]\n{brokers}Spread=0\n")
        self.start(
            self.programs / "identityd", "--state-directory", folder / "state", "--socket", folder / "socket",
            "--config", folder / "identityd.conf")
        wait("identityd", lambda: Client(folder / "socket").ask("ping") == "OK\n")
        Client(folder / "socket").ask("renew device")
        Client(folder / "socket").ask(f"devices name {name}")
        self.start(
            self.programs / "identity-fleet", "--daemon", folder / "socket", "--socket", folder / "fleet",
            "--config", folder / "identity-fleet.conf")
        wait("identity-fleet", lambda: Client(folder / "fleet").ask("fleet status"))
        return folder

    def join(self, folder, inviter):
        file = self.folder / f"invitation-{uuid.uuid4()}"
        for place, *words in [(inviter, "invite", "--no-passphrase"), (folder, "join")]:
            environment = {
                "IDENTITYD_SOCKET": str(place / "socket"), "IDENTITY_FLEET_SOCKET": str(place / "fleet")}
            subprocess.run(
                [self.programs / "identityctl", "account", words[0], f"--file={file}", *words[1:]], check=True,
                env=os.environ | environment, stdout=subprocess.DEVNULL)

    def measure(self, ports):
        devices = [self.device(f"device{place}", ports) for place in range(3)]
        Client(devices[0] / "fleet").ask("account create alice")
        for device in devices[1:]:
            self.join(device, devices[0])
        for device in devices:
            wait("all devices", lambda: Client(device / "socket").ask("devices").endswith("OK 3\n"))
            wait("the state live", lambda: "state=live" in Client(device / "fleet").ask("fleet status"))
        writers = [Client(device / "socket") for device in devices]
        listeners = [Client(device / "socket") for device in devices]
        for listener in listeners:
            listener.ask("subscribe devices")
        durations = []
        for change in range(CHANGES):
            began = time.monotonic()
            name = f"name{change}"
            if (answer := writers[change % 3].ask(f"devices name {name}")) != "OK\n":
                sys.exit(f"fleet.py: a device did not take its name: {answer}")
            for place, listener in enumerate(listeners):
                event = listener.lines.readline()
                if f"name={name}" not in event.split():
                    sys.exit(f"fleet.py: not the event of {name}: {event}")
                if place != change % 3:
                    durations.append((time.monotonic() - began) * 1_000)
            time.sleep(max(0, began + 0.35 - time.monotonic()))
        return sorted(durations)


def main():
    programs = pathlib.Path(sys.argv[1])
    kinds = {"Mosquitto": Measurement.mosquitto}
    if "IDENTITYD_NATS_SERVER" in os.environ:
        kinds["NATS, three nodes"] = Measurement.cluster
    status = 0
    for kind, start in kinds.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            measurement = Measurement(programs, pathlib.Path(folder), stack)
            durations = measurement.measure(start(measurement))
        for part, target in TARGETS.items():
            duration = durations[len(durations) * part // 100]
            verdict = "met" if duration <= target else "MISSED"
            status = status if duration <= target else 1
            print(f"{kind}: p{part} {duration:.1f} ms, target {target} ms: {verdict}")
        print(f"{kind}: longest {durations[-1]:.1f} ms of {len(durations)}")
    return status


sys.exit(main())
