#!/usr/bin/python3
"""Answers that the real daemon does not give: broken, overlong, late, in pieces, or cut off. The server is played."""

import time, unittest

from daemons import PlayedDaemon
from programs import compiled, run

# Replies of a server to "ping", and the lines that the library yields for each.
LINES = [
    (b"OK\n", "ok"),
    (b"* a\n* b\nOK 2\n", "row [a]|row [b]|ok [2]"),
    (b"*\nOK\n", "row|ok"),
    (b'OK a  b "c d" e=f g="" h="i j"\n', "ok [a] [b] [c d] e=[f] g=[] h=[i j]"),
    (b'OK "a=b" c=d=e\n', "ok [a=b] c=[d=e]"),
    (b'OK "\\"\\\\\\/\\b\\t"\n', 'ok ["\\/\b\t]'),
    (b'OK "\\u0041\\u00e9\\u20ac\\ud83d\\ude00"\n', "ok [Aé€😀]"),
    ("OK é €😀\n".encode(), "ok [é] [€😀]"),
    (b"OK -1 _a=b\n", "ok [-1] [_a=b]"),
    (b"ERR denied a person reads this\n", "denied a person reads this"),
    (b"ERR future-code text\n", "future-code text"),
]
BROKEN = [
    b"\n", b"OKAY\n", b"ok\n", b"FOO\n", b"O\n", b"**\n", b"*a\n", b"OK\r\n", b"OK a\tb\n", b"OK a\x00b\n",
    b"\x00OK\n", b"OK \x7f\n", b"OK \xc2\x80\n", b'OK "a\n', b'OK "a"b\n', b'OK a"b\n', b"OK a\\b\n", b'OK "\\x"\n',
    b'OK "\\u00"\n', b'OK "\\u0000"\n', b'OK "\\u12 4"\n', b'OK "\\u+123"\n', b'OK "\\ud800"\n',
    b'OK "\\ud800\\u0041"\n', b'OK "\\udc00"\n', b'OK "\\ud800\\', b'OK "\\\n', b"OK a= b\n", b"OK a=\n", b"OK a=b c\n",
    b"ERR\n", b"ERR \n", b"ERR code\n", b"ERR  text\n", b"EVENT 1 device created\n", b"EVENT\n",
]


class AnswerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiled("answers")

    def answers(self, *turns, milliseconds=20000, large=None):
        server = PlayedDaemon(*turns)
        self.addCleanup(server.close)
        lines = run(server.socket, "answers", str(milliseconds), *([str(large)] if large else [])).splitlines()
        return lines, server

    def test_lines_of_the_protocol(self):
        for sent, wanted in LINES:
            with self.subTest(sent):
                lines, server = self.answers([sent, sent])
                self.assertEqual("|".join(lines), f"{wanted}|{wanted}")
                self.assertEqual(server.lines, [b'"ping"\n'] * 2)

    def test_broken_lines_end_the_connection_and_the_next_request_opens_another(self):
        for sent in BROKEN:
            with self.subTest(sent):
                turn = [sent] if sent.endswith(b"\n") else [sent + b"\n"]
                lines, server = self.answers(turn, [b"OK\n"])
                self.assertEqual(lines, ["EBADMSG", "ok"])

    def test_bytes_one_by_one_and_together(self):
        text = b'* name="a \\ud83d\\ude00 b"\nOK 1\n'
        steps = [b""] + [(bytes([byte]),) for byte in text]
        lines, _ = self.answers([step for byte in steps for step in (byte, 0.002)] + [text])
        self.assertEqual(lines, ["row name=[a 😀 b]", "ok [1]"] * 2)

    def test_requests_that_the_server_reads_late_are_sent_whole(self):
        # More than a socket holds, and no reply before the last one: only the room in the socket wakes the client.
        lines, server = self.answers([0.3] + [b""] * 6 + [b"OK\n" * 7], large=7, milliseconds=5000)
        self.assertEqual(lines, ["ok"] * 7)
        self.assertEqual(server.lines, [b'"check" "' + b"x" * 59_999 + b'"\n'] * 7)

    def test_a_reply_that_breaks_off(self):
        for part in (b"", b"OK", b"* a\n* b", b"* a\n", b"ERR busy"):
            lines, _ = self.answers([part, None], [b"OK\n"])
            self.assertEqual(lines[-2:], ["ECONNRESET", "ok"], part)
            self.assertEqual(lines[:-2], ["row [a]"] if b"\n" in part else [])

    def test_overlong_lines_and_the_longest_one(self):
        longest = 524_288
        for size, wanted in ((longest, "ok"), (longest + 1, "EMSGSIZE"), (8 * longest, "EMSGSIZE")):
            line = b"OK " + b"x" * (size - 4) + b"\n"
            lines, _ = self.answers([line], [b"OK\n"]) if wanted != "ok" else self.answers([line, b"OK\n"])
            self.assertEqual([lines[0].split(" ")[0], lines[1]], [wanted, "ok"])
            self.assertEqual(len(lines[0]), size + 1 if wanted == "ok" else len(wanted))
        lines, _ = self.answers([b"x" * (longest + 5)], [b"OK\n"])  # without an end
        self.assertEqual(lines, ["EMSGSIZE", "ok"])
        lines, _ = self.answers([b"OK" + b" a" * 1_000 + b"\n", b"OK\n"])
        self.assertEqual(lines[0].count("[a]"), 1_000)

    def test_a_late_reply_ends_the_wait_also_if_bytes_trickle_in(self):
        for turn in ([b""], [b"OK"], [b"* a\n* b"], [b""] + [(b"x",), 0.05] * 100):
            before = time.monotonic()
            lines, _ = self.answers(turn, [b"OK\n"], milliseconds=500)
            self.assertEqual(lines[-2:], ["ETIMEDOUT", "ok"], turn)
            self.assertGreater(time.monotonic() - before, 0.5)
            self.assertLess(time.monotonic() - before, 4)

    def test_each_line_of_a_slow_reply_has_its_own_limit(self):
        turn = [b""] + [(b"* a\n",), 0.2] * 8 + [(b"OK\n",)] + [b"OK\n"]
        lines, _ = self.answers(turn, milliseconds=1000)
        self.assertEqual(lines, ["row [a]"] * 8 + ["ok"] * 2)

    def test_a_refusal_before_the_request_is_its_reply(self):
        refusal = b"ERR busy too many connections\n"
        lines, _ = self.answers([(refusal,), None], [(refusal,), 0.1, None], [b"OK\n"])
        self.assertEqual(lines, ["busy too many connections"] * 2)

    def test_lines_after_the_reply_end_the_connection(self):
        for rest in (b"OK\n", b"* a\n", b"x", b"ERR denied text\n"):
            lines, server = self.answers([b"OK\n" + rest], [b"OK\n"])
            self.assertEqual(lines, ["ok", "ok"], rest)
            self.assertEqual(len(server.lines), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
