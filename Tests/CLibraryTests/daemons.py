"""Daemons for the tests of the library for C: the real one, and a played one that sends any bytes."""

import os, pathlib, shutil, signal, socket, subprocess, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("IDENTITYD_RELEASE_BIN", ROOT / ".build/debug"))
PATIENCE = 30


def until(condition, what):
    """Waits for a condition, and returns its first true value."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


class Daemon:
    """The real daemon, with a state of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="library-"))
        self.socket = str(self.folder / "socket")
        self.state = self.folder / "state"
        self.process = None
        self.start()

    def start(self):
        log = open(self.folder / "log", "ab")
        command = [PROGRAMS / "identityd", f"--state-directory={self.state}", f"--socket={self.socket}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        until(self.answers, "the start of the daemon")

    def answers(self):
        try:
            return self.ask("ping") == ["OK"]
        except (ConnectionError, FileNotFoundError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def lose_state(self):
        self.end()
        shutil.rmtree(self.state)
        self.start()

    def ask(self, *requests):
        """Sends requests together, and returns the final lines."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(self.socket)
            lines = connection.makefile("r", encoding="utf-8", newline="\n")
            sender = threading.Thread(target=connection.sendall, args=("".join(f"{r}\n" for r in requests).encode(),))
            sender.start()
            answers = []
            while len(answers) < len(requests):
                line = lines.readline()
                if not line:
                    raise ConnectionError("the daemon closed the connection")
                if not line.startswith("*"):
                    answers.append(line.rstrip("\n"))
            sender.join()
            return answers

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)


class PlayedDaemon:
    """A server that sends the same bytes to every client of a turn. It may do what the real daemon never does.

    turns: for each connection what to send, and the last for all further ones. Each is a list of bytes to send after
    one more line has come, of bytes in a tuple to send at once, of numbers of seconds to wait, and of None for the end
    of the connection. At the end of the list, the connection stays open.
    """

    def __init__(self, *turns):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="library-"))
        self.socket = str(self.folder / "socket")
        self.turns, self.lines, self.open = turns, [], []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        number = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            turn = self.turns[min(number, len(self.turns) - 1)]
            number += 1
            threading.Thread(target=self.play, args=(connection, turn), daemon=True).start()

    def play(self, connection, turn):
        lines = connection.makefile("rb")
        try:
            for step in turn:
                if step is None:
                    lines.close()
                    connection.close()
                    return
                if isinstance(step, float):
                    time.sleep(step)
                    continue
                if isinstance(step, tuple):
                    connection.sendall(step[0])
                    continue
                self.lines.append(lines.readline())
                connection.sendall(step)
            self.open.append((connection, lines))
        except OSError:  # the library ended the connection
            lines.close()
            connection.close()

    def close(self):
        self.listener.close()
        for connection, lines in self.open:
            lines.close()
            connection.close()
        shutil.rmtree(self.folder)
