#!/usr/bin/env python3
"""A client of identityd that uses only Python's standard library; see identityd-protocol(7).
client.py WORD...        sends one request, and prints its rows and the words after OK
client.py follow [SEQ [EPOCH]]   prints events as they happen, first those after SEQ, and continues after a restart.
    If the daemon no longer has them, prints the current values, and then the events that follow.
Exit status: 0 for OK, 1 for ERR, 3 for no daemon or an incomplete answer."""
import json, os, re, socket, sys, time

def quoted(word):
    name, value = re.fullmatch(r"([A-Za-z][A-Za-z0-9._-]*=)?(.*)", word, re.DOTALL).groups("")
    return name + json.dumps(value)

def converse(request):
    """Sends a line, and yields the kind and the content of each received line."""
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(os.environ.get("IDENTITYD_SOCKET", "/run/identityd/identityd.sock"))
        daemon.sendall(request.encode() + b"\n")
        for line in daemon.makefile(encoding="utf-8", newline="\n"):
            kind, _, content = line.rstrip("\n").partition(" ")
            if kind == "ERR": print("client.py:", content, file=sys.stderr)
            if kind == "ERR" and not (content.startswith("gone ") and follows): sys.exit(1)
            yield kind, content

follows, last, epoch = sys.argv[1:2] == ["follow"], "".join(sys.argv[2:3]), "".join(sys.argv[3:4])
if epoch: epoch = f"epoch={epoch}"
start = "subscribe"
request = " ".join(map(quoted, sys.argv[1:]))
while True:
    try:
        if follows: request = f"subscribe since={last} {epoch}".rstrip() if last else start
        for kind, content in converse(request):
            if kind == "EVENT" and content.split(" ")[1] == "lag":
                last = content.rpartition("from=")[2]
                break  # A new connection gets the omitted events.
            if kind == "ERR":
                last, epoch, start = "", "", "subscribe snapshot=yes"
                break  # A new connection gets the current values.
            if content and (kind != "OK" or not follows):
                print("EVENT " * (kind == "EVENT") + content, flush=True)
            if kind == "*": continue
            if kind == "OK" and not follows: sys.exit(0)
            if kind == "OK": epoch = content.partition(" ")[2]
            last = content.split(" ")[0]
        else: raise ConnectionError("the answer is incomplete")
    except OSError as error:
        if not follows or not last: sys.exit(print("client.py:", error, file=sys.stderr) or 3)
        time.sleep(1)
