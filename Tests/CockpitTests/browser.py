"""A daemon, Cockpit without systemd and a headless browser, for the tests of the page.

Everything runs in a mount namespace of its own, where /run is empty: the page knows one path of the socket only.

Pictures of the states are kept in .build/screenshots, named by the state and by Debian's release.
"""

import contextlib, os, pathlib, platform, shutil, signal, socket, subprocess, sys, tempfile, time, unittest

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("IDENTITYD_RELEASE_BIN", ROOT / ".build/debug")).resolve()
AXE = os.environ.get("IDENTITYD_AXE")
SOCKET = "/run/identityd/identityd.sock"
SCREENSHOTS = ROOT / ".build/screenshots"
RELEASE = platform.freedesktop_os_release().get("VERSION_CODENAME", "unknown")
PATIENCE = 20


def enter_namespace():
    """Runs the program again in a mount namespace of its own, unless it is there already."""
    if os.environ.get("IDENTITYD_NAMESPACE") == "yes":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"], check=True)
        return
    os.environ["IDENTITYD_NAMESPACE"] = "yes"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def until(condition, what):
    """Waits until a condition holds, and returns its value."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"this never happened: {what}")
        time.sleep(0.02)


def remove(folder):
    """Removes a temporary folder. Processes of a browser may write to it for a moment after its driver has ended."""

    def is_gone():
        try:
            folder.cleanup()
        except OSError:
            return False
        return True

    until(is_gone, f"the removal of {folder.name}")


class Daemon:
    """A daemon, by default at the system's path, with a state of its own."""

    def __init__(self, folder, path=SOCKET):
        self.folder, self.socket = pathlib.Path(folder), path
        self.state, self.apps = self.folder / "state", self.folder / "apps.d"
        self.configuration = self.folder / "identityd.conf"
        self.credentials = self.folder / "credentials"
        self.process = None
        self.apps.mkdir()
        self.credentials.mkdir()
        self.configuration.write_text(f"[Apps]\nDirectories={self.apps}\n")

    def start(self):
        os.makedirs(os.path.dirname(self.socket), exist_ok=True)
        options = ["--state-directory", self.state, "--socket", self.socket, "--config", self.configuration]
        self.log = open(self.folder / "log", "ab")
        environment = os.environ | {"CREDENTIALS_DIRECTORY": str(self.credentials)}
        self.process = subprocess.Popen([PROGRAMS / "identityd", *options], env=environment, stderr=self.log)
        until(lambda: self.process.poll() is not None or self.answers(), "the start of the daemon")
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return self

    def answers(self):
        try:
            return self.ask("ping") == ["OK"]
        except OSError:
            return False

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None
            self.log.close()

    def pause(self):
        """Lets requests wait until the daemon goes on."""
        self.process.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        until(lambda: "State:\tT" in status.read_text(), "the pause of the daemon")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def move_to_hardware(self, number):
        """Stops, and has the next start find hardware with this number."""
        self.stop()
        (self.credentials / "identityd.hardware").write_text(f"0000000{number}-0000-4000-8000-000000000000\n")

    def begin_anew(self):
        """Starts with an empty store and without manifests."""
        self.stop()
        shutil.rmtree(self.state, ignore_errors=True)
        for manifest in self.apps.iterdir():
            manifest.unlink()
        return self.start()

    def ask(self, *requests):
        """Sends requests, and returns all lines of the replies."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall("".join(f"{request}\n" for request in requests).encode())
            connection.shutdown(socket.SHUT_WR)
            return connection.makefile(encoding="utf-8", newline="\n").read().split("\n")[:-1]

    def manifest(self, name, vendor="org.example", text=""):
        """Installs an app by a manifest."""
        (self.apps / f"{name}.app").write_text(f"[App]\nVendor={vendor}\nUnit={name}.service\n{text}")


class Console:
    """Cockpit's web server with the session of a user, and no login."""

    def __init__(self, folder, user=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        share = pathlib.Path(folder) / "share"
        environment = os.environ | {
            "XDG_DATA_DIRS": f"{share}:/usr/local/share:/usr/share",
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}:/usr/lib/cockpit",
            "HOME": f"{folder}/home-{user or 'root'}",
        }
        command = ["/usr/lib/cockpit/cockpit-ws", "--local-session=cockpit-bridge", "--no-tls"]
        command += ["--address=127.0.0.1", f"--port={self.port}"]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        self.log = open(pathlib.Path(folder) / f"console-{user or 'root'}", "ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        until(self.listens, "the start of the web server")

    def listens(self):
        with contextlib.closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def address(self, path="identityd/index"):
        return f"http://127.0.0.1:{self.port}/cockpit/@localhost/{path}.html"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def install_page(folder):
    """Puts the page where Cockpit finds it, as the package has it."""
    page = pathlib.Path(folder) / "share/cockpit/identityd"
    page.parent.mkdir(parents=True)
    subprocess.run([ROOT / "packaging/cockpit/install", page], check=True)


def browser(folder):
    """Starts a headless browser, which leaves nothing outside of the folder."""
    home = pathlib.Path(folder) / "browser"
    home.mkdir()
    options = webdriver.ChromeOptions()
    for option in ["headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "window-size=1200,900"]:
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = os.environ | {"HOME": str(home), "TMPDIR": str(home)}
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver", env=environment), options=options)


class Page:
    """The page in the browser, on a release of Debian."""

    def __init__(self, driver, release=RELEASE):
        self.driver, self.release = driver, release

    def open(self, console):
        self.driver.get(console.address())

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def sees(self, text, selector="main"):
        """Waits until an element has a text."""
        try:
            until(lambda: text in self.text(selector), text)
        except AssertionError:
            raise AssertionError(f"{text!r} never came; there is {self.text(selector)!r}") from None

    def click(self, label, selector="main"):
        """Clicks a button by its label, once it is there and enabled. Opens the menu that the button is in."""
        script = """
          const isOn = (button) => button.getAttribute("aria-disabled") !== "true";
          const shown = [...document.querySelectorAll(`${arguments[1]} button`)];
          const found = shown.find((button) => button.innerText.trim() === arguments[0] && isOn(button));
          const menu = found?.closest(".items");
          if (menu?.hidden) menu.previousElementSibling.click();
          if (found) { found.focus(); found.click(); }
          return found !== undefined;"""
        until(lambda: self.run(script, label, selector), f"a button {label!r} in {selector}")

    def press(self, selector):
        """Clicks an element as a person does. The page may replace it in between, and then the new one is clicked."""
        def pressed():
            try:
                self.one(selector).click()
            except StaleElementReferenceException:
                return False
            return True

        until(pressed, f"a click on {selector}")

    def is_on(self, action):
        """Whether a button of the page is turned on."""
        return self.one(f'[data-action="{action}"]').get_attribute("aria-disabled") != "true"

    def type(self, selector, text):
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def keep_picture(self, state):
        """Keeps a picture of the page in a state."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SCREENSHOTS / f"{state}-{self.release}.png"))

    def complaints(self):
        """The errors and warnings in the console of the browser, but for those of Cockpit itself."""
        entries = [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        messages = [entry["message"] for entry in entries]
        return [message for message in messages if "/identityd/" in message or "Security Policy" in message]


class PageCase(unittest.TestCase):
    """Tests with a daemon, the console of root and a browser, which each suite starts once."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="identityd-")
        cls.addClassCleanup(remove, cls.folder)
        os.chmod(cls.folder.name, 0o755)
        install_page(cls.folder.name)
        cls.daemon = Daemon(cls.folder.name)
        cls.addClassCleanup(cls.daemon.stop)
        cls.console = Console(cls.folder.name)
        cls.addClassCleanup(cls.console.stop)
        cls.page = Page(browser(cls.folder.name))
        cls.addClassCleanup(cls.page.driver.quit)

    def setUp(self):
        self.page.complaints()
        self.daemon.begin_anew()

    def tearDown(self):
        complaints = self.page.complaints()
        self.assertEqual(complaints, [])

    def fill(self):
        """Makes identifiers, an item, a version and tokens of the app of root, and returns the device identifier."""
        requests = ["get device", "get installation", "get vendor", "item put service=mail account=alice data=eA=="]
        requests += ["version report 1.4.1", "version report 1.4.2"]
        requests += ["token put fcm secret-token-of-root", "token put apns x"]
        replies = self.daemon.ask(*requests)
        self.assertTrue(all(reply.startswith("OK") for reply in replies), replies)
        return replies[0].split()[1]

    def open(self, console=None):
        self.page.open(console or self.console)

    def follow(self, console=None):
        self.open(console)
        until(lambda: self.page.all("#events-table tbody tr"), "the events")

    def status(self, name):
        rows = self.daemon.ask("status")
        return next((row.partition("=")[2] for row in rows if row.startswith(f"* {name}=")), None)

    def show(self, state):
        """Keeps a picture of the page in a state, and checks its accessibility."""
        self.page.keep_picture(state)
        if AXE is None:
            return
        self.page.run(pathlib.Path(AXE).read_text())
        script = """
          const done = arguments[0];
          axe.run().then((found) => done(found.violations), (error) => done(`${error}`));"""
        found = self.page.driver.execute_async_script(script)
        self.assertIsInstance(found, list, found)
        texts = [f"{rule['id']}: {node['html']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]
        self.assertEqual(texts, [])
