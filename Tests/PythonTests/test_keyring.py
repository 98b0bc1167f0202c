#!/usr/bin/python3
"""The backend for the package keyring, with its own program and its own choice of a backend."""

import sys, unittest

from support import DaemonCase

from identityd import verbs

PASSWORD = 'p\u00e4ss "word" \\ \u20ac'


class KeyringTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.installed = self.install()

    def keyring(self, *words, input=""):
        return self.run_program("keyring", *words, input=input, **self.installed)

    def python(self, code):
        return self.run_program(sys.executable, "-c", "import keyring, keyring.errors\n" + code, **self.installed)

    def test_the_program_keeps_passwords_in_identityd(self):
        status, told, errors = self.keyring("--list-backends")
        self.assertIn("identityd.keyring.Keyring (priority: 2)", told, errors)
        status, _, errors = self.keyring("set", "https://example.org/", "alice", input=PASSWORD + "\n")
        self.assertEqual(status, 0, errors)
        self.assertEqual(self.keyring("get", "https://example.org/", "alice")[:2], (0, PASSWORD + "\n"))
        item = self.client.ask(verbs.item_read(service="keyring:https://example.org/", account="alice"))
        self.assertEqual(item.data.decode(), PASSWORD)
        self.assertNotEqual(self.keyring("get", "https://example.org/", "bob")[0], 0)
        self.assertEqual(self.keyring("del", "https://example.org/", "alice")[0], 0)
        self.assertNotEqual(self.keyring("get", "https://example.org/", "alice")[0], 0)
        status, told, errors = self.keyring("del", "https://example.org/", "alice")
        self.assertIn("there is no such password", told + errors)

    def test_the_items_of_a_program_are_not_touched(self):
        self.client.ask(verbs.item_put(service="mail", account="alice", data=b"own", label="My mail"))
        self.assertEqual(self.keyring("set", "mail", "alice", input="other\n")[0], 0)
        self.assertEqual(self.keyring("del", "mail", "alice")[0], 0)
        self.assertEqual(self.client.ask(verbs.item_read(service="mail", account="alice")).data, b"own")

    def test_a_credential_is_found_with_and_without_a_username(self):
        code = """
keyring.set_password("s", "alice", "secret")
for username in (None, "alice", "bob"):
    found = keyring.get_credential("s", username)
    print(found and (found.username, found.password))
print(keyring.get_credential("other", None))
"""
        self.assertEqual(self.python(code)[1], "('alice', 'secret')\n('alice', 'secret')\nNone\nNone\n")

    def test_the_choice_of_a_backend(self):
        """Above files without encryption, below the Secret Service, and not at all without a daemon."""
        code = """
import keyring.backend
class Plain(keyring.backend.KeyringBackend):
    priority = 0.5
    get_password = set_password = delete_password = lambda self, *_: None
class Desktop(Plain):
    priority = 5
def chosen(*classes):
    kept = (*classes, type(ours)) if ours else classes
    keyring.core.init_backend(limit=lambda one: type(one) in kept)
    return type(keyring.get_keyring()).__name__
found = [one for one in keyring.backend.get_all_keyring() if type(one).__module__ == "identityd.keyring"]
ours = found[0] if found else None
print(chosen(), chosen(Plain), chosen(Desktop), type(keyring.get_keyring()).__module__)
"""
        self.assertEqual(self.python(code)[1], "Keyring Keyring Desktop __main__\n")
        self.daemon.end()
        status, told, errors = self.python(code)
        self.assertEqual(told, "Keyring Plain Desktop __main__\n", errors)
        self.assertNotIn("identityd", self.keyring("--list-backends")[1])

    def test_errors_are_those_of_keyring_and_have_no_password(self):
        self.client.ask(verbs.item_put(service="keyring:s", account="bytes", data=b"\xffhunter2"))
        code = """
import traceback
for use in (lambda: keyring.set_password("s", "", "hunter2"), lambda: keyring.set_password("s" * 250, "a", "hunter2"),
            lambda: keyring.set_password("s", "a", "hunter2\\ud800"),
            lambda: keyring.set_password("s", "a", "hunter2" * 10_000),
            lambda: keyring.get_password("s", "bytes"), lambda: keyring.delete_password("s", "a")):
    try:
        use()
    except keyring.errors.KeyringError as error:
        shown = "".join(traceback.format_exception(error, limit=0)) + repr(error) + repr(error.__context__)
        print(type(error).__name__, "hunter2" in shown)
"""
        status, told, errors = self.python(code)
        kinds = ["PasswordSetError"] * 4 + ["KeyringError", "PasswordDeleteError"]
        self.assertEqual(told.splitlines(), [f"{kind} False" for kind in kinds], errors)


if __name__ == "__main__":
    unittest.main()
