#!/usr/bin/python3
"""The content of the page for Cockpit, its changes, and the ways to use it, in a browser.

Needs root, and Debian's chromium-driver and python3-selenium. With IDENTITYD_AXE=FILE, also runs the rules of axe-core
about accessibility.
"""

import time, unittest

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.keys import Keys

from browser import PageCase, enter_namespace, until

OTHER = "557e5958-d390-4cbf-b928-2a2b19a1399a"


class PageTest(PageCase):
    # --- Content --------------------------------------------------------------------------------------------------

    def test_hostile_names_are_shown_as_text(self):
        self.fill()
        markup = "<img src=x onerror=document.title='owned'>"
        self.daemon.ask(
            f'account set "{markup}"', 'devices name "\\u202e<b>gnp.exe"',
            f'item put service="{markup}" account="\\u2066a" data=eA==',
            f'version report "{markup}\\u202e1"', 'token put "</bdi><script>x" abc')
        self.follow()
        self.page.sees(markup, "#device")
        self.page.sees(markup + "\\u202e1", "#apps-table")
        self.page.sees("</bdi><script>x", "#apps-table")
        self.page.click("user:0", "#apps-table")
        self.page.sees(markup, "#dialog")
        self.page.sees("\\u2066a", "#dialog")
        self.page.click("Close", "#dialog")
        self.page.click("Devices…")
        self.page.sees("\\u202e<b>gnp.exe", "#dialog")
        hidden = self.page.run("return /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText)")
        self.assertFalse(hidden)
        self.show("hostile-names")
        self.assertEqual(self.page.all("main img, dialog img, main script, dialog script, main b"), [])
        self.assertEqual(self.page.driver.title, "Identity")

    def test_the_most_apps_with_manifests_are_shown_in_pages_and_filtered(self):
        self.daemon.stop()
        for number in range(4_096):
            self.daemon.manifest(f"org.example.app{number:04}", vendor=f"org.example{number % 7}")
        self.daemon.start()
        self.open()
        self.page.sees("is installed.", "#events")
        self.page.sees("4096", "#apps-count")
        self.page.sees("Page 1 of 82", "#apps-page")
        self.assertEqual(len(self.page.all("#apps-table tbody tr")), 50)
        self.show("most-apps")
        self.page.click("Next")
        self.page.sees("org.example.app0050", "#apps-table")
        # The focus stays on the button although there is no page before.
        self.page.click("Previous")
        self.page.sees("Page 1 of 82", "#apps-page")
        self.assertEqual(self.page.run("return document.activeElement.dataset.action"), "previous")
        self.page.type("#filter-text", "APP3999")
        self.page.sees("org.example.app3999", "#apps-table")
        self.assertEqual(len(self.page.all("#apps-table tbody tr")), 1)

    def test_a_storm_of_events_is_drawn_ten_times_a_second_at_most(self):
        self.fill()
        self.daemon.ask("token invalidate apns x")
        self.follow()
        self.page.run("""
          window.drawings = 0;
          new MutationObserver(() => (window.drawings += 1)).observe(
            document.getElementById("events-table"), { childList: true });""")
        start = time.monotonic()
        for number in range(0, 5_000, 500):
            self.daemon.ask(*(f"account set storm-{place}" for place in range(number, number + 500)))
        self.page.sees("storm-4999", "#device")
        self.page.sees("storm-4999", "#events")
        self.assertLessEqual(self.page.run("return window.drawings"), 11 * (time.monotonic() - start) + 2)
        self.assertLessEqual(len(self.page.all("#events-table tbody tr")), 200)
        self.page.click("Pause")
        self.daemon.ask("account set after-the-storm")
        self.page.sees("after-the-storm", "#device")
        self.assertNotIn("after-the-storm", self.page.text("#events"))
        self.page.click("Pause")
        self.page.sees("after-the-storm", "#events")
        self.page.type("#events-text", "storm-4998")
        until(lambda: len(self.page.all("#events-table tbody tr")) == 1, "one event")
        # The event is no longer among the latest ones, so the list of tokens tells the state.
        self.open()
        self.page.sees("apns ✗ invalid", "#apps-table")

    def test_after_a_lag_the_states_of_tokens_are_asked_for_again(self):
        self.fill()
        self.daemon.ask("token invalidate apns x")
        self.follow()
        self.page.sees("apns ✗ invalid", "#apps-table")
        self.page.run("""
          window.summaries = [];
          const place = document.getElementById("summary");
          new MutationObserver(() => summaries.push(place.innerText)).observe(place, { childList: true });
          setTimeout(() => alert("The page stops reading."));""")
        alert = until(self.alert, "the alert")
        for number in range(0, 20_000, 500):
            self.daemon.ask(*(f"account set {'x' * 200}-{place}" for place in range(number, number + 500)))
        alert.accept()
        self.page.sees("-19999", "#device")
        until(lambda: any("connecting" in text for text in self.page.run("return summaries")), "the lag")
        self.page.sees("apns ✗ invalid", "#apps-table")

    def alert(self):
        try:
            return self.page.driver.switch_to.alert
        except NoAlertPresentException:
            return None

    def test_an_older_check_that_ends_later_is_not_shown(self):
        self.follow()
        self.page.sees("socket", "#checks")
        self.page.run("window.ends = []; cockpit.spawn = () => ({ then: (done) => ends.push(done) });")
        self.page.click("Check again")
        self.page.click("Check again")
        self.page.sees("Checking …", "#checks")
        self.page.run("""
          const report = (name) => JSON.stringify({ checks: [{ name, result: "ok" }], findings: [] });
          ends[1](report("newer"));
          ends[0](report("older"));""")
        self.page.sees("newer", "#checks")
        self.page.sees("in order", "#summary")

    # --- Changes --------------------------------------------------------------------------------------------------

    def test_a_renewal_is_shown_first_and_needs_a_typed_word(self):
        device = self.fill()
        self.follow()
        self.page.click("Renew the device identifier…")
        self.page.sees(device, "#dialog")
        self.assertEqual(self.page.run("return document.activeElement.innerText"), "Cancel")
        self.assertEqual(self.page.one("#dialog .danger").get_attribute("aria-disabled"), "true")
        self.page.press("#dialog .danger")
        self.assertEqual(self.page.text("#dialog .error"), "")
        self.show("renewal")
        self.page.click("Cancel", "#dialog")
        self.assertEqual(self.daemon.ask("get device")[0].split()[1], device)
        self.page.click("Renew the device identifier…")
        self.page.sees(device, "#dialog")
        self.page.type("#dialog-word", "renew")
        self.page.click("Renew", "#dialog")
        self.page.sees("(renewal)", "#events")
        renewed = self.daemon.ask("get device")[0].split()[1]
        self.assertNotEqual(renewed, device)
        self.page.sees(f"This device has the identifier {renewed} in place of {device} (renewal).", "#events")
        self.page.sees(renewed, "#device")
        self.page.click("History…")
        self.page.sees("first use → renewal", "#dialog")
        self.page.sees("root", "#dialog")
        self.page.click("Close", "#dialog")
        self.page.type("#resolve-value", device)
        self.page.click("Find")
        self.page.sees(f"replaced. Now in force: {renewed}", "#resolve-answer")
        self.page.type("#resolve-value", OTHER)
        self.page.click("Find")
        self.page.sees("No such identifier", "#resolve-answer")

    def test_an_identifier_can_be_copied_and_events_have_the_words_of_the_daemon(self):
        device = self.fill()
        self.follow()
        self.page.press("#device .copy")
        # Without the permission for the clipboard the text is selected.
        copied = "return [document.getElementById('announcement').textContent, `${getSelection()}`]"
        until(lambda: self.page.run(copied)[0] == "Copied" or self.page.run(copied)[1] == device, "the copy")
        self.page.type("#events-text", "has its first known")
        self.page.sees("user:0 has its first known version, 1.4.1.", "#events")
        self.page.click("Words of the protocol")
        self.page.sees("version installed of=app app=user:0 version=1.4.1", "#events-table tbody")
        self.assertEqual(self.page.one('[data-action="raw"]').get_attribute("aria-pressed"), "true")
        self.page.click("Words of the protocol")
        self.page.sees("user:0 has its first known version, 1.4.1.", "#events")

    def test_an_app_is_shown_and_changed(self):
        self.fill()
        installation = self.daemon.ask("get installation")[0].split()[1]
        self.follow()
        self.page.click("user:0", "#apps-table")
        for text in [installation, "1.4.1", "1.4.2", "mail", "alice", "fcm", "first use"]:
            self.page.sees(text, "#dialog")
        shown = "const it = document.getElementById('dialog'); return [it.scrollTop, it.scrollHeight > it.clientHeight]"
        self.assertEqual(self.page.run(shown), [0, True])
        self.assertEqual(self.page.run("return document.activeElement.id"), "dialog-title")
        self.show("app")
        self.page.click("Mark invalid…", "#dialog")
        self.page.sees("Senders no longer use the token", "#dialog")
        self.assertNotIn("secret-token-of-root", self.page.run("return document.documentElement.outerHTML"))
        self.page.click("Mark invalid", "#dialog")
        self.page.sees("fcm ✗ invalid", "#apps-table")
        self.page.click("user:0", "#apps-table")
        self.page.click("Renew the installation…", "#dialog")
        self.page.sees("These identifiers are replaced", "#dialog")
        self.page.type("#dialog-word", "renew")
        self.page.click("Renew", "#dialog")
        self.page.sees("The installation of user:0 has the identifier", "#events")
        self.daemon.ask("item delete service=mail")
        self.page.click("user:0", "#apps-table")
        self.page.click("Forget…", "#dialog")
        self.page.type("#dialog-word", "forget")
        self.page.click("Forget", "#dialog")
        self.page.sees("No app is installed yet.", "#apps")

    def test_an_admin_is_told_what_the_manifest_of_an_app_says(self):
        self.daemon.stop()
        groups = "AccessGroups=org.example.shared org.example.media"
        self.daemon.manifest("org.example.play", text=f"{groups}\nRights=fleet\n")
        self.daemon.start()
        self.follow()
        self.page.click("org.example.play", "#apps-table")
        for text in ["org.example.play.service", "org.example.shared, org.example.media", "fleet"]:
            self.page.sees(text, "#dialog dl")
        self.assertNotIn("Container", self.page.text("#dialog dl"))
        self.page.click("Close", "#dialog")

    def test_a_token_that_is_stored_while_the_dialog_is_open_stays_valid(self):
        self.fill()
        self.follow()
        self.page.click("user:0", "#apps-table")
        self.page.click("Mark invalid…", "#dialog")
        self.page.sees("Senders no longer use the token", "#dialog")
        self.daemon.ask("token put fcm a-newer-token")
        self.page.click("Mark invalid", "#dialog")
        self.page.sees("The app has another token by now.", "#dialog")
        tokens = [row for row in self.daemon.ask("token list") if "provider=fcm" in row]
        self.assertEqual([("a-newer-token" in row, "invalid" in row) for row in tokens], [(True, False)])

    def test_long_tables_say_how_many_rows_are_left_out(self):
        self.fill()
        self.daemon.ask(*["renew device"] * 202, *(f"version report 2.{number}" for number in range(51)))
        self.open()
        self.page.sees("user:0 is upgraded from version 2.49 to 2.50.", "#events")
        versions = len(self.daemon.ask("version history")) - 1
        self.page.click("History…")
        self.page.sees("… and 3 more", "#dialog")
        self.page.click("Close", "#dialog")
        self.page.click("user:0", "#apps-table")
        self.page.sees(f"… and {versions - 50} more", "#dialog")

    def test_devices_are_named_and_forgotten_and_a_refusal_is_told(self):
        self.fill()
        self.daemon.ask("account set ops@example.org", f"devices put {OTHER} name=laptop")
        self.follow()
        self.page.click("Devices…")
        self.page.sees("laptop", "#dialog")
        self.show("devices")
        self.page.click("Rename…", "#dialog")
        self.page.click("Rename", "#dialog")
        self.page.sees("Refused (bad-argument)", "#dialog")
        self.page.type("#device-name", "server")
        self.page.click("Rename", "#dialog")
        self.page.sees("has the name", "#events")
        self.page.click("Devices…")
        self.page.sees("server", "#dialog")
        self.page.click("Forget…", "#dialog")
        self.page.sees("This device leaves the list:", "#dialog")
        self.page.click("Forget", "#dialog")
        self.page.sees("is no longer in the account.", "#events")
        self.assertEqual(len(self.daemon.ask("devices")), 2)

    def test_a_change_that_ends_late_leaves_the_next_dialog_open_and_is_sent_once(self):
        self.fill()
        self.follow()
        # A button that opens a dialog at once, without an answer of the daemon.
        self.page.click("user:0", "#apps-table")
        self.page.sees("alice", "#dialog")
        self.page.run("""
          const buttons = [...document.querySelectorAll("#dialog button")];
          window.kept = buttons.find(({ innerText }) => innerText === "Forget…");""")
        self.page.click("Close", "#dialog")
        self.page.click("Renew the device identifier…")
        self.page.sees("These identifiers are replaced", "#dialog")
        self.page.type("#dialog-word", "renew")
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        self.page.click("Renew", "#dialog")
        self.assertEqual(self.page.run("return document.activeElement.innerText"), "Renew")
        self.page.type("#dialog-word", "renew")
        self.page.press("#dialog .danger")
        self.page.click("Cancel", "#dialog")
        self.page.run("kept.click()")
        self.page.sees("Forget an app", "#dialog")
        self.daemon.resume()
        self.page.sees("The identifier is renewed.", "#announcement")
        self.page.sees("in place of", "#events")
        self.page.sees("Forget an app", "#dialog")
        self.assertTrue(self.page.run("return document.getElementById('dialog').open"))
        causes = [row.partition("cause=")[2].split()[0] for row in self.daemon.ask("history device")[:-1]]
        self.assertEqual(causes, ["first-use", "renewed"])

    def test_a_refusal_that_comes_late_is_told(self):
        self.fill()
        self.daemon.ask("account set ops@example.org")
        self.follow()
        self.page.click("Devices…")
        self.page.click("Rename…", "#dialog")
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        self.page.click("Rename", "#dialog")
        self.page.click("Cancel", "#dialog")
        self.daemon.resume()
        self.page.sees("Refused (bad-argument)", "#announcement")

    # --- Ways of use ----------------------------------------------------------------------------------------------

    def test_a_narrow_screen_needs_no_sideways_scrolling(self):
        self.fill()
        self.daemon.ask(f"account set {'x' * 250}")
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        self.page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.addCleanup(self.page.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.follow()
        self.page.sees("socket", "#checks")
        width = "return [window.innerWidth, document.scrollingElement.scrollWidth <= window.innerWidth]"
        self.assertEqual(self.page.run(width), [390, True])
        self.page.click("user:0", "#apps-table")
        self.page.sees("alice", "#dialog")
        self.assertEqual(self.page.run(width), [390, True])
        inside = "const it = document.getElementById('dialog'); return it.scrollWidth <= it.clientWidth"
        self.assertTrue(self.page.run(inside))
        self.show("narrow")

    def test_the_dark_theme_follows_the_shell(self):
        self.fill()
        self.follow()
        light = self.page.run("return getComputedStyle(document.body).backgroundColor")
        self.page.run("localStorage.setItem('shell:style', 'dark')")
        self.addCleanup(self.page.run, "localStorage.removeItem('shell:style')")
        self.follow()
        self.assertNotEqual(self.page.run("return getComputedStyle(document.body).backgroundColor"), light)
        self.show("dark")
        event = "window.dispatchEvent(new CustomEvent('cockpit-style', { detail: { style: 'light' } }))"
        self.page.run(event)
        self.assertEqual(self.page.run("return getComputedStyle(document.body).backgroundColor"), light)

    def test_the_keyboard_is_enough(self):
        self.fill()
        self.follow()
        self.page.sees("socket", "#checks")
        body = self.page.one("body")
        names = []
        for _ in range(6):
            self.page.driver.switch_to.active_element.send_keys(Keys.TAB) if names else body.send_keys(Keys.TAB)
            names.append(self.page.run("return document.activeElement.innerText"))
        self.assertEqual(names, ["Skip to the apps", "⋮", "", "Join…", "Create an account…", "History…"])
        press = lambda key: self.page.driver.switch_to.active_element.send_keys(key)
        focused = lambda: self.page.run("const { action, focus } = document.activeElement.dataset; return action ?? focus")
        self.page.run("document.querySelector('#device .kebab').focus()")
        for key, place in [
            (Keys.ENTER, "renew"), (Keys.ARROW_DOWN, "seal"), (Keys.ARROW_DOWN, "renew"), (Keys.ARROW_UP, "seal"),
            (Keys.ESCAPE, "menu device"), (Keys.ENTER, "renew"),
        ]:
            press(key)
            self.assertEqual(focused(), place)
        self.show("menu")
        press(Keys.ENTER)
        self.page.sees("These identifiers are replaced", "#dialog")
        self.page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        until(lambda: not self.page.run("return document.getElementById('dialog').open"), "the end of the dialog")
        self.assertEqual(focused(), "menu device")
        # The focus stays on an app although an event draws its row anew.
        self.page.run("document.querySelector('#apps-table button').focus()")
        self.daemon.ask("version report 1.5")
        self.page.sees("1.5", "#apps-table")
        self.assertEqual(self.page.run("return document.activeElement.dataset.focus"), "app user:0")

    def test_the_page_speaks_german(self):
        self.fill()
        self.follow()
        self.page.driver.add_cookie({"name": "CockpitLang", "value": "de-de"})
        self.addCleanup(self.page.driver.delete_cookie, "CockpitLang")
        self.follow()
        self.page.sees("Dieses Gerät", "#device")
        self.page.sees("Läuft seit", "#device")
        self.page.sees("Laufende Ereignisse", "#events")
        self.assertEqual(self.page.driver.title, "Identität")
        self.show("german")
        self.assertEqual(self.page.run("return document.documentElement.lang"), "de")
        self.page.click("Die Gerätekennung erneuern …")
        self.page.sees("Zum Fortfahren „renew“ eingeben", "#dialog")


if __name__ == "__main__":
    enter_namespace()
    unittest.main(verbosity=2)
