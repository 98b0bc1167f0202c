#!/usr/bin/python3
"""The credential helper of git, with the real git and a server on loopback that asks for a password."""

import base64, http.server, os, subprocess, threading, unittest

from support import DaemonCase

from identityd import errors, verbs

ACCOUNTS = {"alice": "p\u00e4ss=word", "bob": "builder"}
BACKEND = "/usr/lib/git-core/git-http-backend"


class Server(http.server.BaseHTTPRequestHandler):
    """A server of repositories: git-http-backend(1) behind HTTP with passwords."""

    folder = None
    accounts = ACCOUNTS
    #: The users and the paths of all requests, None for those without a password.
    seen = None

    def handle_request(self):
        user, _, password = self.credentials().partition(":")
        path, _, query = self.path.partition("?")
        self.seen.append((user or None, path))
        if not user or self.accounts.get(user) != password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "GIT_PROJECT_ROOT": self.folder,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": user,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        answer = subprocess.run([BACKEND], input=body, env=environment, capture_output=True).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200 OK").split(" ")[0]))
        for name, value in (fields | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = handle_request

    def credentials(self):
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        return base64.b64decode(value).decode() if kind == "Basic" else ""

    def log_message(self, *_):
        pass


class GitTest(DaemonCase):
    def setUp(self):
        super().setUp()
        self.installed = self.install()
        repositories = self.daemon.folder / "repositories"
        for name in ("one", "two"):
            subprocess.run(["git", "init", "--quiet", "--bare", repositories / name], check=True)
            subprocess.run(["git", "-C", repositories / name, "config", "http.receivepack", "true"], check=True)
        self.handler = type("Handler", (Server,), {"folder": str(repositories), "seen": [], "accounts": dict(ACCOUNTS)})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.addCleanup(self.server.server_close)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"

    def git(self, *words, password=None, user="alice", options=()):
        """Runs git, which asks this for the user and the password if the helper knows none."""
        ask = self.daemon.folder / "ask"
        ask.write_text(f"#!/bin/sh\ncase $1 in User*) echo '{user}' ;; *) echo '{password}' ;; esac\n")
        ask.chmod(0o755)
        environment = self.installed | {"GIT_TERMINAL_PROMPT": "0"}
        environment |= {"GIT_ASKPASS": str(ask)} if password is not None else {"GIT_ASKPASS": "/bin/false"}
        settings = ["credential.helper=identityd", "user.name=a", "user.email=a@example.org", *options]
        return self.run_program("git", *(word for one in settings for word in ("-c", one)), *words, **environment)

    def helper(self, operation, text):
        return self.run_program("git-credential-identityd", operation, input=text, **self.installed)

    def remote(self, name="one"):
        return f"http://{self.host}/{name}"

    def test_git_asks_once_and_the_helper_answers_from_then_on(self):
        status, _, told = self.git("ls-remote", self.remote())
        self.assertNotEqual(status, 0, told)
        self.assertEqual(self.git("ls-remote", self.remote(), password=ACCOUNTS["alice"])[0], 0)
        (item,) = self.client.ask(verbs.item_find(service="git-credential"))
        self.assertEqual(item.attributes, {"protocol": "http", "host": self.host, "username": "alice"})
        clone = self.daemon.folder / "clone"
        for words in (
            ["ls-remote", self.remote("two")],
            ["clone", "--quiet", self.remote(), clone],
            ["-C", clone, "commit", "--quiet", "--allow-empty", "--message", "first"],
            ["-C", clone, "push", "--quiet", "origin", "HEAD"],
        ):
            status, _, told = self.git(*words)
            self.assertEqual(status, 0, told)
        self.assertEqual(self.handler.seen[-1][0], "alice")

    def test_a_password_that_is_refused_is_erased_and_the_next_one_stored(self):
        self.git("ls-remote", self.remote(), password=ACCOUNTS["alice"])
        self.handler.accounts["alice"] = "changed"
        status, _, told = self.git("ls-remote", self.remote())
        self.assertNotEqual(status, 0)
        self.assertNotIn(ACCOUNTS["alice"], told)
        with self.assertRaises(errors.NotFound):
            self.client.ask(verbs.item_find(service="git-credential"))
        self.assertEqual(self.git("ls-remote", self.remote(), password="changed")[0], 0)
        self.assertEqual(self.git("ls-remote", self.remote())[0], 0)

    def test_paths_have_credentials_of_their_own_where_git_says_so(self):
        options = ["credential.useHttpPath=true"]
        self.git("ls-remote", self.remote("one"), password=ACCOUNTS["alice"], options=options)
        self.git("ls-remote", self.remote("two"), password=ACCOUNTS["bob"], user="bob", options=options)
        for name, user in (("one", "alice"), ("two", "bob")):
            self.assertEqual(self.git("ls-remote", self.remote(name), options=options)[0], 0)
            self.assertEqual(self.handler.seen[-1], (user, f"/{name}/info/refs"))
        self.assertNotEqual(self.git("ls-remote", self.remote("three"), options=options)[0], 0)

    def test_the_username_chooses_the_credential(self):
        for user in ("alice", "bob"):
            remote = f"http://{user}@{self.host}/one"
            self.assertEqual(self.git("ls-remote", remote, password=ACCOUNTS[user])[0], 0)
        for user in ("alice", "bob"):
            self.assertEqual(self.git("ls-remote", f"http://{user}@{self.host}/one")[0], 0)
            self.assertEqual(self.handler.seen[-1][0], user)

    def test_the_protocol_of_helpers(self):
        scope = "protocol=https\nhost=example.org:8443\n"
        self.assertEqual(self.helper("get", scope), (0, "", ""))
        for user, path in (("a%40b", None), ("a@b", "x/y.git"), ("", None), ("a@b", None)):
            text = scope + (f"path={path}\n" if path else "") + f"username={user}\npassword={user} {path}\n"
            text += "wwwauth[]=Basic realm=x\ncapability[]=authtype\nfuture=1\n\nignored"
            self.assertEqual(self.helper("store", text), (0, "", ""))
        self.assertEqual(len(self.client.ask(verbs.item_find(service="git-credential"))), 4)
        for user, path in (("a%40b", None), ("a@b", "x/y.git"), ("", None)):
            text = scope + (f"path={path}\n" if path else "") + f"username={user}\n"
            self.assertEqual(self.helper("get", text), (0, f"username={user}\npassword={user} {path}\n", ""))
        # The credential of the whole host before one of a path, and none of another host or port.
        self.assertEqual(self.helper("get", scope + "username=a@b\n")[1], "username=a@b\npassword=a@b None\n")
        self.assertEqual(self.helper("get", scope.replace("8443", "443"))[1], "")
        self.assertEqual(self.helper("get", scope.replace("https", "http"))[1], "")
        self.assertEqual(self.helper("get", scope + "path=x/z.git\n")[1], "")
        # A description without a host means no host, and not any.
        self.assertEqual(self.helper("get", "protocol=https\npath=x/y.git\n"), (0, "", ""))
        self.helper("erase", "protocol=https\npath=x/y.git\n")
        # Another password than that to erase stays.
        self.helper("erase", scope + "username=a@b\npassword=other\n")
        self.assertEqual(len(self.client.ask(verbs.item_find(service="git-credential"))), 4)
        self.helper("erase", scope + "path=x/y.git\n")
        self.assertEqual(len(self.client.ask(verbs.item_find(service="git-credential"))), 3)
        self.assertEqual(self.helper("erase", scope), (0, "", ""))
        with self.assertRaises(errors.NotFound):
            self.client.ask(verbs.item_find(service="git-credential"))
        self.assertEqual(self.helper("future", scope), (0, "", ""))

    def test_a_password_that_expires_is_kept_until_then(self):
        scope = "protocol=https\nhost=example.org\n"
        for expiry, found in (("99999999999", True), ("1", False)):
            self.helper("erase", scope)
            self.helper("store", scope + f"username=a\npassword=x\npassword_expiry_utc={expiry}\n")
            wanted = f"username=a\npassword=x\npassword_expiry_utc={expiry}\n" if found else ""
            self.assertEqual(self.helper("get", scope)[1], wanted)

    def test_no_failure_shows_a_password(self):
        scope = "protocol=https\nhost=example.org\n"
        long_path = f"{scope}path={'x' * 300}\nusername=a\npassword=hunter2\n"
        for text in (
            scope + "username=a\npassword=" + "hunter2" * 10_000,
            scope + "username=a\npassword=" + "hunter2" * 12_000,  # no line of the protocol
            scope + "hunter2\n",
            long_path,
            "password=hunter2" * 50_000,
        ):
            status, told, errors_ = self.helper("store", text)
            self.assertEqual((status, told), (1, ""))
            self.assertRegex(errors_, r"^git-credential-identityd: .+\n$")
            self.assertNotIn("hunter2", errors_)
        self.client.ask(
            verbs.item_put(
                service="git-credential",
                account="x",
                data=b"a\nhost=evil",
                attributes={"protocol": "https", "host": "example.org"},
            )
        )
        status, told, errors_ = self.helper("get", scope)
        self.assertEqual((status, told), (1, ""))
        self.assertNotIn("evil", errors_)
        self.daemon.end()
        status, told, errors_ = self.helper("get", scope)
        self.assertEqual((status, told), (1, ""))
        self.assertIn("no identityd at", errors_)


if __name__ == "__main__":
    unittest.main()
