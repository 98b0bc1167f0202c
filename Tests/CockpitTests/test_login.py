#!/usr/bin/python3
"""The page for Cockpit as the packages install it, on a booted system, with real logins.

test_login.py SUITE     Debian's suite, bookworm or trixie. Needs root, and IDENTITYD_DEBS, the paths of the packages

The picture for the README is overview-trixie.png in .build/screenshots.
"""

import json, os, pathlib, subprocess, sys, tempfile, unittest

from browser import ROOT, Page, browser, remove, until

SUITE = sys.argv[1]
NAME = f"console-{SUITE}"
TOOL = ROOT / "packaging/tools/container"
CACHE = os.environ.get("IDENTITYD_TEST_CACHE", "/var/cache/identityd-test")
PASSWORD = "correct-horse-battery"
ADDRESS = "http://127.0.0.1:9090"
SYSTEM = f"""
dpkg --install /packages/*identityd*.deb
printf '[Access]\\nAdminGroup=ops\\n' >/etc/identityd/identityd.conf.d/ops.conf
printf '[WebService]\\nAllowUnencrypted=true\\n' >/etc/cockpit/cockpit.conf
: >/etc/cockpit/disallowed-users
groupadd ops
useradd --create-home --shell /bin/bash --groups sudo chief
useradd --create-home --shell /bin/bash --groups ops member
useradd --create-home --shell /bin/bash plain
for user in root chief member plain; do echo "$user:{PASSWORD}" | chpasswd; done
systemctl restart identityd.service
systemctl start cockpit.socket
"""


def tool(*words):
    outcome = subprocess.run([TOOL, *words], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise AssertionError(f"{words}: {outcome.stdout}{outcome.stderr}")
    return outcome.stdout


def inside(script):
    return tool("exec", NAME, "/bin/sh", "-euc", script)


def boot():
    """Boots the system, and goes on in its network namespace, whose loopback the browser needs."""
    paths = [pathlib.Path(path) for path in os.environ["IDENTITYD_DEBS"].split()]
    # The system has no Python.
    packages = [f"-c{path}:/packages/{path.name}" for path in paths if not path.name.startswith("python3-")]
    tool("up", NAME, SUITE, "-p", str(os.getpid()), *packages)
    running = pathlib.Path(os.environ.get("IDENTITYD_TEST_SCRATCH", CACHE)) / "running"
    spawn = (running / NAME / "nspawn").read_text().strip()
    leader = pathlib.Path(f"/proc/{spawn}/task/{spawn}/children").read_text().split()[0]
    os.environ["IDENTITYD_INSIDE"] = "yes"
    os.execvp("nsenter", ["nsenter", f"--net=/proc/{leader}/ns/net", sys.executable, *sys.argv])


class LoginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(tool, "down", NAME)
        inside(SYSTEM)
        cls.folder = tempfile.TemporaryDirectory(prefix="identityd-")
        cls.addClassCleanup(remove, cls.folder)
        cls.page = Page(browser(cls.folder.name), SUITE)
        cls.addClassCleanup(cls.page.driver.quit)

    def setUp(self):
        self.page.driver.delete_all_cookies()

    def tearDown(self):
        complaints = self.page.complaints()
        self.assertEqual(complaints, [])

    def log_in(self, user, administrative=False):
        """Logs in, and opens the page in Cockpit's frame."""
        driver = self.page.driver
        driver.switch_to.default_content()
        driver.get(f"{ADDRESS}/")
        until(lambda: self.page.all("#login-user-input"), "the login page")
        driver.delete_all_cookies()
        access = "any" if administrative else "none"
        self.page.run("localStorage.setItem(`superuser:${arguments[0]}`, arguments[1])", user, access)
        driver.get(f"{ADDRESS}/identityd")
        until(lambda: self.page.all("#login-user-input"), "the login page")
        until(lambda: self.page.one("#login-user-input").is_displayed(), "the field of the user")
        self.page.type("#login-user-input", user)
        self.page.type("#login-password-input", PASSWORD)
        self.page.one("#login-button").click()
        frame = until(lambda: self.page.all("iframe[name$='/identityd']"), "the frame of the page")[0]
        driver.switch_to.frame(frame)
        self.page.sees("debian", "#device")

    def renew(self, by):
        """Renews the device identifier, and finds in the history who has done so. Returns the identifier."""
        before = inside("identityctl get device").strip()
        self.page.click("Renew the device identifier…")
        self.page.sees("These identifiers are replaced", "#dialog")
        self.page.type("#dialog-word", "renew")
        self.page.click("Renew", "#dialog")
        until(lambda: inside("identityctl get device").strip() != before, "another identifier")
        device = inside("identityctl get device").strip()
        last = json.loads(inside("identityctl history device --json"))[-1]
        self.assertEqual((last["uuid"], last["by"]), (device, by))
        return device

    def test_root_finds_out_why_and_renews(self):
        inside("identityctl get device")
        self.log_in("root")
        self.page.sees("unit", "#checks .good")
        device = self.renew(by="uid:0")
        self.page.sees(device, "#device")
        self.page.click("History…")
        self.page.sees(device, "#dialog tbody tr:first-child")
        self.page.sees("renewal", "#dialog tbody tr:first-child")
        self.page.sees("root", "#dialog tbody tr:first-child")

    def test_picture(self):
        apps = {"org.example.player": "1.4.2", "org.example.notes": "3.0", "net.example.sync": "0.9.1"}
        for app in apps:
            inside(f"printf '[App]\\nVendor={app.rpartition('.')[0]}\\n' >/etc/identityd/apps.d/{app}.app")
        until(lambda: all(app in inside("identityctl app list") for app in apps), "the apps")
        for app, version in apps.items():
            inside(f"identityctl get installation app={app}; identityctl version report {version} app={app}")
            inside(f"echo token-of-{app} | identityctl token put fcm --token-file=- app={app}")
        inside("identityctl account set ops@example.org; identityctl devices name web-1")
        stale = "org.example.notes"
        inside(f"echo token-of-{stale} | identityctl token invalidate fcm --token-file=- app={stale}")
        self.page.driver.set_window_size(1280, 1000)
        self.log_in("root")
        self.page.sees("unit", "#checks .good")
        self.page.sees("org.example.player", "#apps-table")
        self.page.keep_picture("overview")

    def test_administrative_access_makes_an_admin(self):
        inside("identityctl get device")
        self.log_in("chief", administrative=True)
        self.page.sees("unit", "#checks .good")
        self.renew(by="uid:0")

    def test_limited_access_is_told(self):
        inside("identityctl get device")
        self.log_in("chief")
        self.page.sees("Turn on administrative access", "#notices")
        self.page.keep_picture("login-limited")
        self.assertFalse(self.page.is_on("renew"))

    def test_a_member_of_the_group_of_admins_keeps_its_name(self):
        inside("identityctl get device")
        number = inside("id --user member").strip()
        self.log_in("member")
        self.renew(by=f"uid:{number}")
        self.page.click("History…")
        self.page.sees("member", "#dialog tbody tr:first-child")

    def test_a_plain_user_sees_its_own_part_and_the_end_of_the_daemon(self):
        inside("identityctl get device")
        self.log_in("plain")
        self.page.sees("Turn on administrative access", "#notices")
        inside("systemctl stop identityd.socket identityd.service")
        self.page.sees("identityd is not running", "#notices")
        self.page.keep_picture("login-stopped")
        inside("systemctl start identityd.socket identityd.service")
        until(lambda: "not running" not in self.page.text("#notices"), "the end of the notice")


if __name__ == "__main__":
    if os.environ.get("IDENTITYD_INSIDE") != "yes":
        boot()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
