"""A real daemon for the tests of the Python package, and what they share."""

import os, shutil, signal, subprocess, sys, tempfile, time, unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "packaging/python"
PROGRAMS = Path(os.environ.get("IDENTITYD_RELEASE_BIN", ROOT / ".build/debug"))
# The tests are about the tree, even if the package is installed.
sys.path.insert(0, str(PACKAGE))
sys.dont_write_bytecode = True

from identityd import Client, errors, verbs

PATIENCE = 20


def until(condition, what):
    """Waits until a condition holds, and returns its value."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"this never happened: {what}")
        time.sleep(0.01)
    return value


class Daemon:
    """A daemon with a folder of its own."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="identityd-"))
        self.state, self.socket = self.folder / "state", str(self.folder / "socket")
        self.process = None
        # The text of the configuration; None for the defaults.
        self.configuration = None

    @staticmethod
    def is_admin():
        """Whether this process is an admin of its daemon, as root is."""
        return os.geteuid() == 0

    def start(self, *wrapper):
        """Starts the daemon, by a command that runs it if there is one, and waits until it answers."""
        options = ["--state-directory", self.state, "--socket", self.socket]
        if self.configuration is not None:
            file = self.folder / "identityd.conf"
            file.write_text(self.configuration)
            options += ["--config", file]
        # A wrapper may fork. All of its processes are one group, and the output ends with the last of them.
        self.process = subprocess.Popen(
            [*wrapper, PROGRAMS / "identityd", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(self.answers, "the start of the daemon")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("the daemon did not start")
        try:
            with Client(self.socket) as client:
                client.ask(verbs.ping())
        except errors.Unreachable:
            return False
        return True

    def end(self, with_signal=signal.SIGKILL):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, with_signal)
            self.process.communicate()

    def remove(self):
        self.end()
        shutil.rmtree(self.folder)


class DaemonCase(unittest.TestCase):
    """A test with a daemon, which ends with the test, and a client of it."""

    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.remove)
        self.daemon.start()
        self.client = self.new_client()

    def new_client(self, **options):
        client = Client(self.daemon.socket, **options)
        self.addCleanup(client.close)
        return client

    @property
    def environment(self):
        """The environment for a program on the package, with a home of its own."""
        return {
            "PATH": os.environ["PATH"],
            "IDENTITYD_SOCKET": self.daemon.socket,
            "PYTHONPATH": str(PACKAGE),
            "HOME": str(self.daemon.folder),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def install(self):
        """Installs the package as distributions do, and returns the environment for programs on it."""
        modules, programs = self.daemon.folder / "modules", self.daemon.folder / "programs"
        subprocess.run([PACKAGE / "install", modules, programs], check=True)
        return {"PYTHONPATH": str(modules), "PATH": f"{programs}:{os.environ['PATH']}"}

    def run_program(self, *words, input="", user=None, **environment):
        """Runs a program, as another user if one is named, and returns its status, its output and its errors."""
        ended = subprocess.run(
            words,
            input=input,
            user=user,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ended.returncode, ended.stdout, ended.stderr
