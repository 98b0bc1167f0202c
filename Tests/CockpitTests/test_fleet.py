#!/usr/bin/python3
"""The page for Cockpit and the fleet's service: invitations, and joining an account, in a browser.

Needs root, and Debian's chromium-driver, mosquitto and python3-selenium. With IDENTITYD_AXE=FILE, also runs the rules of
axe-core about accessibility.
"""

import re, unittest

from browser import Daemon, PageCase, enter_namespace, until
from fleet import Broker, Fleet

CODE = r"[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}"


class FleetTest(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.broker = Broker(cls.folder.name)
        cls.addClassCleanup(cls.broker.stop)
        folder = cls.daemon.folder / "other"
        folder.mkdir()
        cls.other = Fleet(Daemon(folder, folder / "daemon"), cls.broker, folder / "fleet")
        cls.addClassCleanup(cls.other.daemon.stop)
        cls.addClassCleanup(cls.other.stop)
        cls.fleet = Fleet(cls.daemon, cls.broker)
        cls.addClassCleanup(cls.fleet.stop)

    def setUp(self):
        super().setUp()
        self.broker.start()
        self.other.daemon.begin_anew()
        self.other.start()
        self.daemon.ask("devices name first")
        self.other.daemon.ask("renew device", "devices name second")
        self.fill()

    def tearDown(self):
        for service in (self.fleet, self.other, self.broker):
            service.stop()
        super().tearDown()

    def create(self, fleet):
        self.assertEqual(fleet.run("account", "create", "alice").returncode, 0)
        fleet.wait("state=live")

    def invite(self):
        self.page.click("Invite…")
        self.page.sees("The code is good for fifteen minutes", "#dialog")
        self.page.click("Show a code", "#dialog")
        self.page.sees("Good until", "#dialog")
        return self.page.text("#dialog .join-code")

    def html(self):
        return self.page.run("return document.documentElement.outerHTML")

    def test_a_device_is_invited_by_a_code_and_its_name_is_told(self):
        self.fleet.start()
        self.create(self.fleet)
        self.follow()
        code = self.invite()
        self.assertRegex(code, f"^{CODE}$")
        self.page.sees("Waiting for the other device", "#dialog")
        self.show("invitation")
        outcome = self.other.run("account", "join", "-", text=code)
        self.assertEqual(outcome.returncode, 0, outcome)
        self.page.sees("Joined: second", "#dialog")
        self.assertNotIn(code, self.html())
        self.show("invitation-used")
        self.page.click("Close", "#dialog")
        until(lambda: any("name=second" in row for row in self.daemon.ask("devices")), "the other device")
        self.page.click("Devices…")
        self.page.sees("second", "#dialog")
        self.assertNotIn(code, self.page.text("#events") + self.fleet.log.read_text())
        self.assertFalse(any(code in line for line in self.daemon.ask("status", "subscribe since=0")))

    def test_a_code_leaves_the_page_with_its_dialog_and_ends_with_the_service(self):
        self.fleet.start()
        self.create(self.fleet)
        self.follow()
        first = self.invite()
        self.page.click("Close", "#dialog")
        until(lambda: first not in self.html(), "the end of the code")
        self.assertEqual(self.page.run("return document.activeElement.dataset.action"), "invite")
        self.invite()
        self.broker.stop()
        self.page.sees("The broker is not reached:", "#dialog")
        self.broker.start()
        self.page.sees("Waiting for the other device", "#dialog")
        # The service begins anew with the new identifier.
        self.daemon.ask("renew device")
        self.page.sees("The invitation has ended", "#dialog")
        self.page.click("Close", "#dialog")
        self.fleet.wait("state=live")
        last = self.invite()
        self.fleet.stop()
        self.page.sees("does not answer any more", "#dialog")
        self.assertNotIn(last, self.html())

    def test_a_code_lets_this_device_join(self):
        self.fleet.start()
        self.create(self.other)
        self.follow()
        code = re.search(CODE, self.other.run("account", "invite").stdout)[0]
        self.page.click("Join…")
        self.page.sees("This device gets the list", "#dialog")
        self.assertNotIn("The broker is not reached", self.page.text("#dialog"))
        self.assertEqual(self.page.run("return document.activeElement.innerText"), "Cancel")
        wrong = code[:-1] + ("A" if code[-1] != "A" else "B")
        self.page.type("#join-code", wrong)
        self.page.click("Join", "#dialog")
        self.page.sees("the code is mistyped", "#dialog .error")
        self.show("join")
        self.page.type("#join-code", f" {code.lower()} ")
        self.page.click("Join", "#dialog")
        self.page.sees("alice", "#device-values")
        self.page.sees("This device has joined the account.", "#announcement")
        self.page.click("Invite…")
        self.page.sees("add one device", "#dialog")
        until(lambda: any("name=second" in row for row in self.daemon.ask("devices")), "the other device")

    def test_an_account_is_created_and_a_device_invited(self):
        self.fleet.start()
        self.follow()
        self.page.click("Create an account…")
        self.page.sees("becomes the first one", "#dialog")
        isOff = "return document.querySelector('#dialog .primary').getAttribute('aria-disabled')"
        self.assertEqual(self.page.run(isOff), "true")
        self.page.type("#account-name", "--my=account")
        self.show("create")
        self.page.click("Create", "#dialog")
        self.page.sees("The account is there.", "#announcement")
        self.page.sees("--my=account", "#device-values")
        self.fleet.wait("state=live")
        code = self.invite()
        self.assertEqual(self.other.run("account", "join", "-", text=code).returncode, 0)

    def test_the_progress_of_joining_is_shown_and_a_refusal(self):
        self.broker.stop()
        self.other.run("account", "create", "alice")
        # This code never gets to the broker.
        code = re.search(CODE, self.other.run("account", "invite").stdout)[0]
        self.other.stop()
        self.fleet.start()
        self.follow()
        self.page.click("Join…")
        self.page.sees("This device gets the list", "#dialog")
        self.assertNotIn("The broker is not reached", self.page.text("#dialog"))
        self.page.type("#join-code", code)
        self.page.click("Join", "#dialog")
        self.page.sees("The broker is not reached:", "#dialog")
        self.broker.start()
        self.page.sees("Looking for the invitation", "#dialog")
        self.show("joining")
        # The service ends, and with it the attempt.
        self.fleet.stop()
        until(lambda: self.page.text("#dialog .error") != "", "the failure")

    def test_without_a_service_the_remedy_is_told(self):
        self.follow()
        self.page.click("Join…")
        self.page.sees("is not installed on this machine", "#dialog")
        self.page.click("Close", "#dialog")
        self.daemon.manifest("identity-fleet")
        self.page.sees("identity-fleet", "#apps-table")
        self.page.click("Join…")
        self.page.sees("sudo systemctl enable --now identity-fleet", "#dialog")
        self.show("no-fleet")

    def test_a_code_is_shown_in_german_in_the_dark_and_on_a_narrow_screen(self):
        self.fleet.start()
        self.create(self.fleet)
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        self.page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.addCleanup(self.page.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.follow()
        self.page.driver.add_cookie({"name": "CockpitLang", "value": "de-de"})
        self.addCleanup(self.page.driver.delete_all_cookies)
        self.page.run("localStorage.setItem('shell:style', 'dark')")
        self.follow()
        self.page.click("Einladen …")
        self.page.click("Code anzeigen", "#dialog")
        self.page.sees("Warten auf das andere Gerät", "#dialog")
        self.assertRegex(self.page.text("#dialog .join-code"), f"^{CODE}$")
        inside = "const it = document.getElementById('dialog'); return it.scrollWidth <= it.clientWidth"
        self.assertTrue(self.page.run(inside))
        self.show("invitation-narrow")
        self.page.run("localStorage.removeItem('shell:style')")


if __name__ == "__main__":
    enter_namespace()
    unittest.main(verbosity=2)
