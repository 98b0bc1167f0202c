"""Brokers and real devices for the measurements of the fleet."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
import uuid


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait(what, condition, pause=0.02):
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(pause)
    sys.exit(f"fleet.py: {what} not within three minutes")


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


def memory(process, field):
    """A field of /proc/PID/status, in megabytes."""
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1_024


def processor_time(process):
    """The CPU time of all threads, in seconds."""
    threads = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def wakeups(process):
    """How often the threads have waited for something."""
    threads = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    lines = [line for thread in threads for line in (thread / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


class Fleet:
    """Programs and files, until the end of a measurement."""

    def __init__(self, programs, folder, stack):
        self.programs, self.folder, self.stack = programs, folder, stack

    def start(self, *command):
        log = self.stack.enter_context(open(self.folder / "log", "ab"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def mosquitto(self):
        port = free_port()
        configuration = self.folder / "mosquitto.conf"
        configuration.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\n")
        self.start("/usr/sbin/mosquitto", "-c", configuration)
        wait("mosquitto", lambda: not socket.create_connection(("127.0.0.1", port)).close())
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

    def account(self, count, ports):
        """Starts devices in one account."""
        devices = [Device(self, f"device{place}", ports) for place in range(count)]
        devices[0].ask_fleet("account create alice")
        for device in devices[1:]:
            device.join(devices[0].invite())
        for device in devices:
            wait("all devices", lambda: device.ask("devices").endswith(f"OK {count}\n"))
            device.wait_until_live()
        return devices


class Device:
    """A real identityd with a real identity-fleet."""

    def __init__(self, fleet, name, ports):
        self.fleet, self.folder = fleet, fleet.folder / name
        self.folder.mkdir()
        (self.folder / "identityd.conf").write_text("")
        brokers = "".join(f"Broker=mqtt://127.0.0.1:{port}\n" for port in ports)
        (self.folder / "identity-fleet.conf").write_text(f"[Fleet]\n{brokers}Spread=0\n")
        self.daemon = fleet.start(
            fleet.programs / "identityd", "--state-directory", self.folder / "state", "--socket",
            self.folder / "socket", "--config", self.folder / "identityd.conf")
        wait("identityd", lambda: self.ask("ping") == "OK\n")
        self.ask("renew device")
        self.ask(f"devices name {name}")
        self.start_service()

    def start_service(self):
        self.service = self.fleet.start(
            self.fleet.programs / "identity-fleet", "--daemon", self.folder / "socket", "--socket",
            self.folder / "fleet", "--config", self.folder / "identity-fleet.conf")
        wait("identity-fleet", lambda: self.ask_fleet("fleet status"))

    def kill_service(self):
        self.service.kill()
        self.service.wait()

    def ask(self, request):
        return Client(self.folder / "socket").ask(request)

    def ask_fleet(self, request):
        return Client(self.folder / "fleet").ask(request)

    def control(self, *words):
        environment = {
            "IDENTITYD_SOCKET": str(self.folder / "socket"), "IDENTITY_FLEET_SOCKET": str(self.folder / "fleet")}
        subprocess.run(
            [self.fleet.programs / "identityctl", *words], check=True, env=os.environ | environment,
            stdout=subprocess.DEVNULL)

    def invite(self):
        file = self.folder / f"invitation-{uuid.uuid4()}"
        self.control("account", "invite", "--no-passphrase", f"--file={file}")
        return file

    def join(self, invitation):
        self.control("account", "join", f"--file={invitation}")

    def is_live(self):
        return "state=live" in self.ask_fleet("fleet status")

    def wait_until_live(self):
        wait("the state live", self.is_live)
