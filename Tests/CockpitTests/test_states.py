#!/usr/bin/python3
"""The states of the page for Cockpit, in a browser.

Needs root, and Debian's chromium-driver and python3-selenium. With IDENTITYD_AXE=FILE, also runs the rules of axe-core
about accessibility.
"""

import os, shutil, socket, subprocess, unittest

from browser import SOCKET, Console, PageCase, enter_namespace, until


class StateTest(PageCase):
    def test_a_running_daemon_is_shown_and_its_events_as_they_happen(self):
        device = self.fill()
        self.follow()
        self.page.sees(device, "#device")
        self.page.sees("debian", "#device")
        self.page.sees("user:0 has a push token of fcm.", "#events")
        self.page.sees("user:0", "#apps")
        self.page.sees("socket", "#checks")
        self.daemon.ask("account set ops@example.org", "token invalidate apns x")
        self.page.sees("ops@example.org", "#device")
        self.page.sees("This device is in the account ops@example.org.", "#events")
        self.page.sees("apns ✗ invalid", "#apps-table")
        self.assertNotIn("secret-token-of-root", self.page.run("return document.documentElement.outerHTML"))
        self.show("running")

    def test_a_daemon_is_stopped_and_started_while_the_page_is_open(self):
        self.fill()
        self.follow()
        until(lambda: self.page.is_on("history"), "the button")
        self.page.run("document.querySelector('[data-action=history]').focus()")
        self.daemon.stop()
        self.page.sees("identityd is not running", "#notices")
        self.page.sees("needs attention now", "#summary")
        # A button that is turned off keeps the focus, and does nothing.
        self.assertEqual(self.page.run("return document.activeElement.dataset.action"), "history")
        self.page.press('[data-action="history"]')
        # Nor does one in a menu, which stays open.
        self.page.press("#device .kebab")
        self.page.press('[data-action="renew"]')
        self.assertTrue(self.page.one('[data-action="renew"]').is_displayed())
        self.assertFalse(self.page.run("return document.getElementById('dialog').open"))
        self.assertFalse(self.page.is_on("renew"))
        self.show("stopped")
        self.daemon.start()
        until(lambda: "not running" not in self.page.text("#notices"), "the end of the notice")
        self.daemon.ask("account set after@example.org")
        self.page.sees("after@example.org", "#device")
        self.assertTrue(self.page.is_on("renew"))

    def test_without_a_daemon_nothing_is_known(self):
        self.daemon.stop()
        self.open()
        self.page.sees("/run/identityd/identityd.sock", "#notices")
        self.page.sees("not known", "#device-values")
        self.assertNotIn("none yet", self.page.text("main"))
        self.assertFalse(self.page.is_on("history"))
        self.show("missing")

    def test_a_daemon_that_never_answers_is_told_with_its_cause(self):
        self.daemon.stop()
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(SOCKET))
            silent.listen()
            os.chmod(SOCKET, 0o666)
            self.addCleanup(os.unlink, SOCKET)
            self.open()
            self.page.sees("connecting", "#summary")
            self.page.sees("identityd has not answered", "#notices")
            self.page.sees("needs attention now", "#summary")
            # The check gives up after ten seconds, and knows more.
            self.page.sees("nothing was answered in 10 seconds", "#notices")

    def test_an_empty_store_stays_empty(self):
        self.follow()
        self.page.sees("none yet", "#device-values")
        self.page.sees("No app is installed yet.", "#apps")
        self.page.sees("socket", "#checks")
        self.assertFalse(self.page.is_on("devices"))
        self.assertEqual([self.status("apps"), self.status("device-origin")], ["0", "none"])
        self.show("empty")

    def test_a_damaged_store_is_told_once(self):
        self.fill()
        self.daemon.stop()
        self.damage()
        self.daemon.start()
        self.assertEqual(self.status("store"), "damaged")
        self.open()
        self.page.sees("The store is damaged.", "#notices")
        self.page.sees("not known", "#device-values")
        self.assertNotIn("none yet", self.page.text("main"))
        told = self.page.text("#notices")
        self.assertEqual(told.count(self.status("store-reason").strip('"')), 1)
        self.assertNotIn("items", told)
        self.assertNotIn("PRAGMA", told)
        # One line of commands, which changes nothing until somebody has named the copy.
        self.page.sees("cp -aT COPY", "#checks")
        self.page.sees("whose path takes the place of COPY", "#checks")
        self.show("damaged")

    def damage(self):
        """Damages the store of a daemon that has ended."""
        with open(self.daemon.state / "identityd.db", "r+b") as file:
            for place in range(4_096, os.path.getsize(file.name), 4_096):
                file.seek(place + 1_024)
                file.write(b"\xa5" * 2_048)

    def test_a_store_that_is_mended_is_shown_again_and_each_event_once(self):
        device = self.fill()
        self.follow()
        self.page.sees(device, "#device")
        shown = self.page.text("#events-table")
        self.daemon.stop()
        intact = self.daemon.folder / "intact"
        self.addCleanup(shutil.rmtree, intact)
        shutil.copytree(self.daemon.state, intact)
        self.damage()
        self.daemon.start()
        self.page.sees("The store is damaged.", "#notices")
        until(lambda: device not in self.page.text("#device"), "the end of the values")
        self.daemon.stop()
        shutil.rmtree(self.daemon.state)
        shutil.copytree(intact, self.daemon.state)
        self.daemon.start()
        self.page.sees(device, "#device")
        self.page.sees("user:0", "#apps-table")
        until(lambda: "damaged" not in self.page.text("#notices"), "the end of the notice")
        self.assertEqual(self.page.text("#events-table"), shown)

    def test_a_missing_key_is_told_and_all_else_is_usable(self):
        self.fill()
        self.daemon.stop()
        os.unlink(next(self.daemon.state.glob("*key*")))
        self.daemon.start()
        self.assertEqual(self.status("master-key"), "unavailable")
        self.follow()
        self.page.sees("their key is missing", "#notices")
        self.page.sees("master-key", "#checks")
        self.assertTrue(self.page.is_on("renew"))
        self.show("missing-key")

    def test_a_full_disk_is_told_until_there_is_space_again(self):
        self.daemon.stop()
        self.daemon.state.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M,mode=700", "tmpfs", self.daemon.state], check=True)
        self.addCleanup(subprocess.run, ["umount", self.daemon.state], check=True)
        self.addCleanup(self.daemon.stop)
        self.daemon.start()
        self.fill()
        self.follow()
        filler = self.daemon.state / "filler"
        with open(filler, "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(65_536))
        refused = until(lambda: self.refusal_of_a_change(), "a refused change")
        self.assertIn("ERR no-space", refused)
        self.page.sees("Nothing can be changed now.", "#notices")
        self.assertFalse(self.page.is_on("renew"))
        self.show("full-disk")
        filler.unlink()
        until(lambda: self.refusal_of_a_change() is None, "a change")
        until(lambda: "Nothing can be changed" not in self.page.text("#notices"), "the end of the notice")

    def test_a_store_that_is_mounted_read_only_is_told_until_it_can_be_written(self):
        device = self.fill()
        self.daemon.stop()
        self.mount_state("bind")
        self.addCleanup(subprocess.run, ["umount", self.daemon.state], check=True)
        self.addCleanup(self.daemon.stop)
        self.mount_state("remount,bind,ro")
        self.daemon.start()
        self.assertEqual(self.status("store"), "read-only")
        self.follow()
        self.page.sees("Nothing can be changed now.", "#notices")
        self.page.sees("read-only", "#notices")
        self.page.sees(device, "#device")
        self.page.sees("user:0", "#apps-table")
        self.assertEqual([self.page.is_on("renew"), self.page.is_on("history")], [False, True])
        self.show("read-only")
        self.mount_state("remount,bind,rw")
        until(lambda: "Nothing can be changed" not in self.page.text("#notices"), "the end of the notice")
        until(lambda: self.page.is_on("renew"), "the button")
        self.assertEqual(self.status("store"), "ok")

    def mount_state(self, options):
        """Mounts the folder of the store over itself."""
        subprocess.run(["mount", "-o", options, self.daemon.state, self.daemon.state], check=True)

    def test_a_copied_machine_is_told_until_its_identifier_is_renewed(self):
        self.daemon.move_to_hardware(1)
        self.addCleanup(os.unlink, self.daemon.credentials / "identityd.hardware")
        self.daemon.begin_anew()
        device = self.fill()
        self.daemon.move_to_hardware(2)
        self.daemon.start()
        self.follow()
        self.page.sees("This may be a copy of another machine.", "#notices")
        self.page.sees("other hardware", "#notices")
        self.page.sees(device, "#device")
        self.page.sees("Another machine may have the identifiers of this one", "#events")
        self.show("copied-machine")
        self.page.click("It is the original…", "#notices")
        self.page.sees("Confirm this on the original only", "#dialog")
        self.page.click("Cancel", "#dialog")
        self.page.click("It is a copy: renew the device identifier…", "#notices")
        self.page.sees("The original keeps its identifier.", "#dialog")
        self.page.sees(device, "#dialog")
        self.page.type("#dialog-word", "renew")
        self.page.click("Renew", "#dialog")
        until(lambda: "copy of another" not in self.page.text("#notices"), "the end of the notice")
        self.assertNotIn(device, self.page.text("#device"))
        self.assertIsNone(self.status("suspect"))

    def refusal_of_a_change(self):
        replies = self.daemon.ask(*(f"account set {'x' * 200}{number}" for number in range(100)))
        return next((reply for reply in replies if reply.startswith("ERR")), None)

    def test_another_machine_is_told_until_an_admin_knows(self):
        device = self.fill()
        self.daemon.stop()
        other = self.daemon.folder / "machine-id"
        other.write_text("b08dfa6083e7567a1921a715000001fb\n")
        subprocess.run(["mount", "--bind", other, "/etc/machine-id"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/machine-id"], check=True)
        self.daemon.start()
        self.follow()
        self.page.sees("The identifiers were renewed on another machine.", "#notices")
        self.page.sees("another machine-id", "#notices")
        self.assertNotIn(device, self.page.text("#device"))
        self.show("another-machine")
        # The renewal left the push tokens to the former machine, and the change deletes them.
        self.page.click("The change is intended…", "#notices")
        self.page.sees("The new identifiers stay.", "#dialog")
        self.page.sees("These push tokens and items are deleted.", "#dialog")
        self.assertIn("fcm", self.page.text("#dialog table"))
        self.show("another-machine-acknowledged")
        self.page.click("Cancel", "#dialog")
        self.assertIn("provider=fcm", self.daemon.ask("token list")[0])
        self.page.click("The change is intended…", "#notices")
        self.page.click("The change is intended", "#dialog")
        until(lambda: "another machine" not in self.page.text("#notices"), "the end of the notice")
        self.assertIsNone(self.status("machine-change"))
        self.assertEqual(self.daemon.ask("token list"), ["OK 0"])

    def test_faults_in_manifests_and_a_seal_are_told(self):
        self.daemon.stop()
        self.daemon.manifest("org.example.bad", text="Colour=red\n")
        self.daemon.start()
        self.follow()
        self.page.sees("Faults in manifests: 1", "#notices")
        self.page.sees("Colour", "#notices")
        self.show("manifest-faults")
        self.page.click("Seal for a golden image…")
        self.page.sees("all versions", "#dialog")
        self.page.type("#dialog-word", "seal")
        self.page.click("Seal", "#dialog")
        self.page.sees("The store is sealed.", "#notices")
        self.assertEqual(self.status("sealed"), "yes")
        self.assertFalse(self.page.is_on("renew"))
        self.show("sealed")

    def test_a_user_without_rights_sees_its_own_part(self):
        device = self.fill()
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "nc", "-N", "-U", SOCKET]
        subprocess.run(as_user, input=b"get installation\n", check=True, stdout=subprocess.DEVNULL)
        console = Console(self.folder.name, user=65_534)
        self.addCleanup(console.stop)
        self.open(console)
        self.page.sees("Limited access: only what concerns user:65534 is shown.", "#notices")
        self.page.sees(device, "#device")
        self.page.sees("Origin\nnot known", "#device-values")
        self.assertNotIn("user:0", self.page.text("#apps-table"))
        self.assertFalse(self.page.is_on("renew"))
        self.page.click("History…")
        self.page.sees("first use", "#dialog")
        self.page.click("Close", "#dialog")
        self.page.click("user:65534", "#apps-table")
        self.page.sees("first use", "#dialog")
        self.assertEqual([button.text for button in self.page.all("#dialog button:not(.copy)")], ["Close"])
        self.page.click("Close", "#dialog")
        self.show("limited")


if __name__ == "__main__":
    enter_namespace()
    unittest.main(verbosity=2)
