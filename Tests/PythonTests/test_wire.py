#!/usr/bin/python3
"""Words, lines and bounds, and bytes that no identityd sends."""

import base64, os, socket, threading, time, traceback, unittest

from support import DaemonCase, until

from identityd import _words, errors, verbs
from identityd._connection import LINE_BYTES, Answer, Connection, Farewell, ReceivedEvent
from identityd.client import Client

WORDS = [
    "two words",
    'a"b\\c',
    "é ü 😀",
    "*",
    "=",
    "_x=1",
    "a=b",
    "\u00a0",
    "\u2028",
    "tab\there",
    "\x7f\x9f",
    "\\u0000",
]
SECRET = b"hunter2-in-the-clear"


class WordTest(unittest.TestCase):
    def test_words_come_back_as_they_were(self):
        for word in WORDS:
            sent = _words.line(b"OK " + _words.request([_words.operand(word), _words.attribute("a.b", word)])[:-1])
            self.assertEqual((sent.words, sent.attributes), ((word,), {"a.b": word}))

    def test_what_cannot_be_sent_is_refused_before_it_is_sent(self):
        for word in ("a\0b", "\ud800"):
            with self.assertRaises(errors.InvalidRequest):
                verbs.check(word)
        longest = _words.REQUEST_BYTES - len("check \n")
        self.assertEqual(len(verbs.check("x" * longest).line), _words.REQUEST_BYTES)
        with self.assertRaises(errors.TooLong):
            verbs.check("x" * (longest + 1))
        with self.assertRaises(errors.TooLong):
            verbs.help(*["x"] * 256)
        with self.assertRaises(errors.InvalidRequest):
            verbs.item_find(attributes={"two words": "x"})

    def test_lines_that_violate_the_grammar_are_errors(self):
        for line in (
            b'OK "a',
            b'OK "a"b',
            b"OK a\tb",
            b"OK a\x00",
            b"OK \xff",
            b'OK "\\u0000"',
            b'OK "\\ud800"',
            b"EVENTS 1 x",
            b'OK a="b',
            b"OK a=1 a=2",
            b"OK a=1 A=2",
            b"",
            b"ERR",
            b"ERR Code text",
            b"OK a\\b",
            b'OK "\\x"',
            b"OK \xc2\x85",
        ):
            with self.assertRaises(errors.BrokenAnswer, msg=line):
                _words.line(line)


class ConnectionTest(unittest.TestCase):
    def received(self, data, expected=1, step=1 << 20):
        connection = Connection()
        for _ in range(expected):
            connection.expect()
        for place in range(0, len(data), step):
            connection.receive(data[place : place + step])
        found = []
        while (one := connection.next()) is not None:
            found.append(one)
        return found

    def test_answers_and_events_are_the_same_however_they_arrive(self):
        data = b"* a\n* b c=1\nOK 2\nEVENT 7 item added group=g\nERR not-found no such \\ item\r\nERR busy later\n"
        for step in (1, 3, 1 << 20):
            first, event, second, farewell = self.received(data, 2, step)
            self.assertIsInstance(first, Answer)
            self.assertEqual([row.words for row in first.rows], [("a",), ("b",)])
            self.assertEqual(event, ReceivedEvent(7, ("item", "added"), {"group": "g"}))
            self.assertEqual(second.final.words, ("not-found", "no such \\ item"))
            self.assertEqual(farewell, Farewell("busy", "later"))

    def test_lines_at_a_wrong_place_are_errors(self):
        for data in (
            b"OK\nOK\n",
            b"* a\nEVENT 1 item\n",
            b"OK\n* a\n",
            b"EVENT x item\n",
            b"EVENT -1 item\n",
            b"EVENT 1\n",
            b"EVENT 99999999999999999999 item\n",
            b"EVENT\n",
        ):
            with self.assertRaises(errors.BrokenAnswer, msg=data):
                self.received(data)

    def test_a_line_without_an_end_is_an_error_at_the_bound(self):
        with self.assertRaises(errors.BrokenAnswer):
            self.received(b"x" * (LINE_BYTES + 1))


class Played:
    """A server that answers each request with bytes of the test's choice, and then closes."""

    def __init__(self, test, path, reply, closes=True):
        self.reply, self.closes, self.count = reply, closes, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        test.addCleanup(self.end)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        kept = []
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                break
            self.count += 1
            with_request = connection.recv(1 << 16)
            try:
                if with_request:
                    connection.sendall(self.reply)
            except OSError:
                pass
            if self.closes:
                connection.close()
            else:
                kept.append(connection)
        for connection in kept:
            connection.close()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


class HostileTest(DaemonCase):
    def played(self, reply, **options):
        self.number = getattr(self, "number", 0) + 1
        path = f"{self.daemon.folder}/played{self.number}"
        return Played(self, path, reply, **options), Client(path, timeout=0.5)

    def test_each_broken_answer_is_an_error(self):
        for reply, error in {
            b"nonsense\n": errors.BrokenAnswer,
            b"OK data=?\n": errors.BrokenAnswer,
            b"OK data=eA== account=a\n": errors.BrokenAnswer,
            b"* row\n": errors.ConnectionLost,
            b"OK": errors.ConnectionLost,
            b"": errors.ConnectionLost,
            b"ERR strange-code x\x1b[31m\n": errors.Refused,
            b"\xff\n": errors.BrokenAnswer,
            b"EVENT 1 item added\n" * 70_000: errors.BrokenAnswer,
        }.items():
            with self.subTest(reply[:40]):
                _, client = self.played(reply)
                with client, self.assertRaises(error) as raised:
                    client.ask(verbs.item_read(service="s", account="a"))
                self.assertTrue(str(raised.exception).isprintable())

    def test_a_question_is_repeated_once_and_a_change_never(self):
        server, client = self.played(b"* row\n")
        with client, self.assertRaises(errors.ConnectionLost):
            client.ask(verbs.devices())
        self.assertEqual(server.count, 2)
        with client, self.assertRaises(errors.ConnectionLost):
            client.ask(verbs.renew("device"))
        self.assertEqual(server.count, 3)

    def test_a_daemon_that_does_not_answer_ends_by_the_time_limit(self):
        for reply in (b"", b"* row\n"):
            _, client = self.played(reply, closes=False)
            began = time.monotonic()
            with client, self.assertRaises(errors.TimedOut):
                client.ask(verbs.devices())
            self.assertLess(time.monotonic() - began, 10)

    def test_broken_events_end_the_iteration_with_an_error(self):
        begin = b"OK 5 epoch=e\n"
        for reply in (
            b"OK x epoch=e\n",
            b"OK 5\n",
            begin + b"EVENT 6 lag missed=1 from=x\n",
            begin + b"EVENT 6 lag\n",
            begin + b"* row\n",
            begin + b"EVENT x item\n",
            b"EVENT 1 item added\n",
            b"* x\n" + begin + begin,
        ):
            with self.subTest(reply):
                _, client = self.played(reply, closes=False)
                with client.events("item") as events, self.assertRaises(errors.BrokenAnswer):
                    for _ in range(3):
                        events.next(5)

    def test_no_error_has_a_secret(self):
        data = base64.b64encode(SECRET)
        for reply in (
            b"OK data=%s\n",
            b'OK data="%s\n',
            b"OK data=%s!\n",
            b"OK data=\xff%s\n",
            b"* data=%s a=1 a=2\nOK\n",
            b"OK data=%s created=x\n",
        ):
            _, client = self.played(reply % data)
            with client, self.assertRaises(errors.IdentityError) as raised:
                client.ask(verbs.item_read(service="s", account="a"))
            told = "".join(traceback.format_exception(raised.exception))
            error = raised.exception
            while error is not None:
                told += repr(error) + repr(vars(error))
                error = error.__context__
            self.assertNotIn(data.decode(), told)
            self.assertNotIn(SECRET.decode(), told)


class SecretTest(DaemonCase):
    def test_secrets_of_all_byte_values_come_back(self):
        for name, data in {"all": bytes(range(256)) * 128, "none": b"", "one": b"\0", "lines": b'\n\r\n"\\ ='}.items():
            self.client.ask(verbs.item_put(service="s", account=name, data=data))
            item = self.client.ask(verbs.item_read(service="s", account=name))
            self.assertEqual(item.data, data)

    def test_no_representation_shows_a_secret(self):
        put = verbs.item_put(service="s", account="a", data=SECRET)
        self.client.ask(put)
        read = self.client.ask(verbs.item_read(service="s", account="a"))
        token = self.client.ask(verbs.token_put("fcm", SECRET.decode()))
        shown = f"{put!r} {put} {read!r} {token!r} {self.client.ask(verbs.token_get('fcm'))!r}"
        replaced = self.client.ask(verbs.token_put("fcm", "another"))
        self.assertEqual(replaced.previous, SECRET.decode())
        shown += f"{replaced!r}"
        for hidden in (SECRET.decode(), base64.b64encode(SECRET).decode(), repr(SECRET)):
            self.assertNotIn(hidden, shown)

    def test_a_secret_over_the_limit_is_refused_with_its_code(self):
        with self.assertRaises(errors.Limit) as raised:
            self.client.ask(verbs.item_put(service="s", account="a", data=bytes(65_537)))
        self.assertEqual(raised.exception.code, "limit")

    def test_a_socket_of_another_user_gets_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        path = f"{self.daemon.folder}/other"
        server = Played(self, path, b"OK\n")
        os.chown(path, 12345, 12345)
        with Client(path) as client, self.assertRaises(errors.Untrusted):
            client.ask(verbs.ping())
        until(lambda: server.count == 1, "the connection")
        with Client(path, trust="anybody") as client:
            client.ask(verbs.ping())
        os.chown(path, 0, 0)
        os.chmod(self.daemon.folder, 0o777)
        with Client(path) as client, self.assertRaises(errors.Untrusted):
            client.ask(verbs.ping())


if __name__ == "__main__":
    unittest.main()
