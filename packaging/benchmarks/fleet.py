"""Measures a fleet of real devices.

    fleet.py FOLDER [MEASUREMENT…]     FOLDER has identityd and identity-fleet; all measurements if none is named

    changes   how long a change takes to an event at another device, over Mosquitto and over three nodes of the
              nats-server in IDENTITYD_NATS_SERVER
    idle      what identity-fleet needs in a minute in which nothing happens, in an account of three
    reads     how long a read at identityd takes while identity-fleet does not run, is idle, is flooded by its broker, and
              hangs
    account   how long a device needs to join an account of 10,000, and its memory then

Each target is a ratio within one run, a size or a time. Exits with status 1 if one is missed.
"""

import base64
import contextlib
import json
import multiprocessing
import os
import pathlib
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from fleet_devices import Client, Device, Fleet, memory, processor_time, wakeups

CHANGES = 150
# Of the measurement of reads.
ROUNDS, READS, REST = 10, 3_000, 0.0003
DEVICES = 10_000
TWIN = pathlib.Path(__file__).parents[2] / "Tests/FleetSealTests/fleet_twin.py"

is_missed = False


def show(name, value, unit, target=None):
    """Prints a row; the target is the highest value."""
    global is_missed
    verdict = "" if target is None else f", target {target}{unit}: {'met' if value <= target else 'MISSED'}"
    is_missed |= target is not None and value > target
    print(f"{name} {value:.{4 if value < 0.1 else 2 if value < 10 else 1}f}{unit}{verdict}", flush=True)


# --- Changes and idle devices --------------------------------------------------------------------------------------


def changes_over(kind, fleet, ports):
    devices = fleet.account(3, ports)
    writers = [Client(device.folder / "socket") for device in devices]
    listeners = [Client(device.folder / "socket") for device in devices]
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
        # A device changes its name once a second, which is as often as the rules publish it at once.
        time.sleep(max(0, began + 0.35 - time.monotonic()))
    durations.sort()
    for part, target in {50: 30, 99: 250}.items():
        show(f"{kind}: a change at another device, p{part}", durations[len(durations) * part // 100], " ms", target)
    show(f"{kind}: a change at another device, longest of {len(durations)}", durations[-1], " ms")


def changes(fleet):
    changes_over("Mosquitto", fleet, fleet.mosquitto())


def changes_of_cluster(fleet):
    if "IDENTITYD_NATS_SERVER" in os.environ:
        changes_over("NATS, three nodes", fleet, fleet.cluster())


def idle(fleet):
    service = fleet.account(3, fleet.mosquitto())[0].service
    # Behind the second reading, which comes 15 s after the first one. The third one comes after two minutes.
    time.sleep(25)
    before = processor_time(service), wakeups(service)
    time.sleep(60)
    show("idle: resident memory", memory(service, "VmRSS"), " MB", 16)
    show("idle: CPU time", (processor_time(service) - before[0]) / 60 * 100, " % of a core", 0.05)
    show("idle: wake-ups", (wakeups(service) - before[1]) / 60, " a second", 1)


# --- Reads beside the fleet ----------------------------------------------------------------------------------------


def packets(data):
    """Takes the whole MQTT packets off a buffer."""
    found, place = [], 0
    while True:
        length, size = 0, 1
        while place + size < len(data):
            byte = data[place + size]
            length |= (byte & 127) << 7 * (size - 1)
            size += 1
            if byte < 128:
                break
        else:
            break
        if place + size + length > len(data):
            break
        found.append(bytes(data[place:place + size + length]))
        place += size + length
    del data[:place]
    return found


def relay(listener, port, is_flooding):
    """Passes the bytes between devices and their broker."""
    while True:
        device, _ = listener.accept()
        broker = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pass_on, args=(device, broker, is_flooding), daemon=True).start()


def pass_on(device, broker, is_flooding):
    """Passes the bytes of a connection. While it is told so, repeats all of the broker's messages, each once whole and
    once damaged, as fast as the device takes them."""
    received, flood = bytearray(), b""
    with device, broker, contextlib.suppress(OSError):
        while True:
            if is_flooding.is_set() and flood:
                device.sendall(flood * max(1, 65_536 // len(flood)))
            for ready in select.select([device, broker], [], [], 0 if is_flooding.is_set() else 0.05)[0]:
                if not (data := ready.recv(65_536)):
                    return
                if ready is device:
                    broker.sendall(data)
                    continue
                received += data
                for packet in packets(received):
                    device.sendall(packet)
                    if packet[0] >> 4 == 3 and len(flood) < 1 << 20:
                        flood += packet + packet[:-1] + bytes([packet[-1] ^ 1])


def read(devices, times):
    """Reads at the devices in turn, so that what else the machine does hits all of them, and notes the times in
    microseconds. As in the benchmark `neighbour`, this process gets its CPU at once, and rests between two reads. Here
    the daemons get theirs at once, too: the CPU time of the service is a row of its own."""
    for device in devices:
        for thread in pathlib.Path(f"/proc/{device.daemon.pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_RR, os.sched_param(1))
    pairs = list(zip([Client(device.folder / "socket").socket for device in devices], times))
    affinity = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(affinity)})
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    for _ in range(READS):
        pairs.reverse()
        for client, durations in pairs:
            time.sleep(REST)
            began = time.perf_counter_ns()
            client.sendall(b"get device\n")
            answer = client.recv(4_096)
            durations.append((time.perf_counter_ns() - began) / 1_000)
            if not answer.startswith(b"OK "):
                sys.exit(f"fleet.py: {answer}")
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, affinity)


def reads(fleet):
    [port] = fleet.mosquitto()
    listener = socket.create_server(("127.0.0.1", 0))
    is_flooding = multiprocessing.Event()
    between = multiprocessing.Process(target=relay, args=(listener, port, is_flooding), daemon=True)
    between.start()
    devices = fleet.account(2, [listener.getsockname()[1]])
    for device in devices:
        device.kill_service()
    # The other one stays without the service, and its record at the broker.
    device = devices[0]
    times = {kind: ([], []) for kind in ["not running", "idle", "flooded", "stopped"]}
    used = []
    for _ in range(ROUNDS):
        read(devices, times["not running"])
        device.start_service()
        device.wait_until_live()
        read(devices, times["idle"])
        is_flooding.set()
        time.sleep(1)
        before, began = processor_time(device.service), time.monotonic()
        read(devices, times["flooded"])
        used.append((processor_time(device.service) - before) / (time.monotonic() - began) * 100)
        if not device.is_live():
            sys.exit("fleet.py: the flood has ended the connection")
        device.service.send_signal(signal.SIGSTOP)
        is_flooding.clear()
        read(devices, times["stopped"])
        device.kill_service()
    between.kill()
    if statistics.median(used) < 1:
        sys.exit("fleet.py: the flood does not reach the service")
    show("reads: CPU time of the flooded service", statistics.median(used), " % of a core")
    for kind, pair in times.items():
        for part in [50, 99]:
            own, other = (sorted(durations)[len(durations) * part // 100] for durations in pair)
            show(
                f"reads, service {kind}: p{part} {own:.1f} µs, without a service {other:.1f} µs, ratio", own / other, "",
                None if kind == "not running" else 1.05)


# --- A large account -----------------------------------------------------------------------------------------------


def sealed_records(invitation, count):
    """Topics and records of the devices of an account, made by the implementation in Python that the tests have."""
    content = base64.b64decode(invitation.read_text().splitlines()[-1])
    commands = [{"do": "invitation", "root": "00" * 32, "invitation": content.hex()}]
    [answer] = twin(commands)
    root = dict(answer["body"]["fields"])[20]
    commands = []
    for number in range(count):
        device = uuid.uuid4().hex
        fields = [
            [1, f"device {number}".encode().hex()], [2, "signing"], [3, "box"], [4, struct.pack(">q", 1).hex()],
            [5, "00" * 16]]
        commands.append({
            "do": "seal", "kind": 1, "root": root, "seed": os.urandom(32).hex(), "body": {
                "subject": device, "generation": 1, "counter": 1, "run": os.urandom(16).hex(),
                "time": 1_790_000_000_000, "author": device, "fields": fields}})
    return [(answer["topic"].encode(), bytes.fromhex(answer["message"])) for answer in twin(commands)]


def twin(commands):
    output = subprocess.run(
        [sys.executable, TWIN], input="\n".join(map(json.dumps, commands)), stdout=subprocess.PIPE, text=True,
        check=True).stdout
    return list(map(json.loads, output.splitlines()))


def packet(kind, content):
    length, size = b"", len(content)
    while True:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            return bytes([kind]) + length + content


def publish(port, messages):
    """Publishes retained messages, and waits until the broker has them."""
    with socket.create_connection(("127.0.0.1", port)) as broker:
        broker.sendall(packet(0x10, b"\0\4MQTT\4\2\0\0\0\6filler"))
        for topic, message in messages:
            broker.sendall(packet(0x31, struct.pack(">H", len(topic)) + topic + message))
        broker.sendall(packet(0xC0, b""))
        received = bytearray()
        while b"\xD0\0" not in packets(received):
            received += broker.recv(65_536)


def account(fleet):
    ports = fleet.mosquitto()
    [first] = fleet.account(1, ports)
    invitation = first.invite()
    first.kill_service()
    publish(ports[0], sealed_records(invitation, DEVICES - 2))
    device = Device(fleet, "newcomer", ports)
    listener = Client(device.folder / "socket")
    listener.ask("subscribe devices")
    began = time.monotonic()
    device.join(invitation)
    names = set()
    while len(names) < DEVICES - 1:
        event = listener.lines.readline()
        if " devices added " in event:
            names.add(event.split("value=")[1].split()[0])
        elif time.monotonic() - began > 180:
            sys.exit(f"fleet.py: {len(names)} devices after three minutes")
    show(f"account: list of {DEVICES} devices complete after", time.monotonic() - began, " s", 60)
    show("account: CPU time of identity-fleet for that", processor_time(device.service), " s")
    show("account: CPU time of identityd for that", processor_time(device.daemon), " s")
    device.wait_until_live()
    show("account: state live after", time.monotonic() - began, " s")
    # Behind the second reading.
    time.sleep(25)
    for name, process in [("identity-fleet", device.service), ("identityd", device.daemon)]:
        show(f"account: resident memory of {name}", memory(process, "VmRSS"), " MB", 64)
        show(f"account: highest resident memory of {name}", memory(process, "VmHWM"), " MB", 64)
    device.kill_service()
    began = time.monotonic()
    device.start_service()
    device.wait_until_live()
    show("account: restarted, live after", time.monotonic() - began, " s")
    show("account: restarted, highest resident memory of identity-fleet", memory(device.service, "VmHWM"), " MB", 64)


MEASUREMENTS = {
    "changes": [changes, changes_of_cluster], "idle": [idle], "reads": [reads], "account": [account]}


def main():
    names = sys.argv[2:] or MEASUREMENTS
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        sys.exit(f"fleet.py: no measurement '{unknown[0]}'; there are: {', '.join(MEASUREMENTS)}")
    for name in names:
        for measure in MEASUREMENTS[name]:
            with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
                measure(Fleet(pathlib.Path(sys.argv[1]), pathlib.Path(folder), stack))
    return 1 if is_missed else 0


sys.exit(main())
