#!/usr/bin/python3
"""Events over restarts and losses of the daemon, in a loop of poll(2)."""

import os, signal, subprocess, threading, unittest

from daemons import PATIENCE, Daemon, PlayedDaemon, until
from programs import compiled, environment


class Follower:
    """The test program follow, which prints what the library yields."""

    def __init__(self, path, *words):
        self.lines = []
        self.process = subprocess.Popen(
            [compiled("follow"), *map(str, words)], env=environment(path), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def events(self):
        return [int(line.split(" ")[1]) for line in list(self.lines) if line.startswith("event ")]

    def await_line(self, beginning, count=1):
        def came():
            return sum(line.startswith(beginning) for line in list(self.lines)) >= count

        try:
            until(came, f"{count} '{beginning}'")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.lines[-20:]}") from error

    def end(self):
        """Ends the program, which frees its handle. A sanitizer would make it fail."""
        self.process.stdin.close()
        errors = self.process.stderr.read()
        self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        if self.process.returncode != 0:
            raise AssertionError(f"{self.process.returncode}: {errors}")


class EventTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)

    def follow(self, *words, daemon=None):
        follower = Follower((daemon or self.daemon).socket, *words)
        self.addCleanup(follower.end)
        return follower

    def put(self, *accounts, service="s"):
        requests = [f"item put service={service} account={account} data=eA==" for account in accounts]
        self.assertEqual({answer.split(" ")[0] for answer in self.daemon.ask(*requests)}, {"OK"})

    def last(self):
        return int(self.daemon.ask("subscribe")[0].split(" ")[1])

    def test_events_come_once_and_none_is_lost_over_kills_and_restarts(self):
        follower = self.follow(0)
        follower.await_line("ok 0 ")
        for round in range(6):
            # The daemon is killed while the follower is behind.
            self.put(*(f"r{round}-{number}" for number in range(50)))
            self.daemon.kill() if round % 2 == 0 else self.daemon.end()
            # Later, it may be between two attempts to connect.
            if round == 0:
                follower.await_line("lost")
            self.daemon.start()
        self.put("end")
        last = self.last()
        follower.await_line(f"event {last} ")
        self.assertEqual(follower.events(), list(range(1, last + 1)))
        kinds = [line.split(" ")[0] for line in follower.lines if not line.startswith("event")]
        self.assertNotIn("gap", kinds)
        self.assertNotIn("error", kinds)
        # A loss and a success alternate.
        self.assertEqual(kinds, ["ok", "lost"] * (len(kinds) // 2) + ["ok"])

    def test_a_position_that_was_kept_goes_on_without_loss(self):
        self.put(*"abcdef")
        last, epoch = self.daemon.ask("subscribe")[0].removeprefix("OK ").replace("epoch=", "").split(" ")
        self.daemon.kill()
        # The follower starts before the daemon, which is an error each time and no end.
        follower = self.follow(int(last) - 3, epoch)
        follower.await_line("error 111 ")  # ECONNREFUSED
        self.daemon.start()
        self.put("g")
        follower.await_line(f"event {int(last) + 1} ")
        self.assertEqual(follower.events(), list(range(int(last) - 2, int(last) + 2)))

    def test_another_store_is_a_gap_and_all_current_values_follow(self):
        self.put(*"abcdef")
        follower = self.follow(0)
        follower.await_line(f"event {self.last()} ")
        self.daemon.lose_state()
        device = self.daemon.ask("get device")
        self.assertTrue(device[0].startswith("OK "))
        follower.await_line("gap gone")
        follower.await_line("ok ", 2)
        gap = follower.lines.index("gap gone")
        # A value that was made after the daemon's start, and before or after the follower was back.
        until(lambda: any("device" in line.split(" ") for line in follower.lines[gap:]), "the device")
        after = [line.split(" ")[0] for line in list(follower.lines)[gap + 1:]]
        # Nothing comes between the gap and the position but values, and nothing after it but events.
        end = after.index("ok")
        self.assertEqual(set(after[:end]) | {"row"}, {"row"})
        self.assertEqual(set(after[end + 1:]) | {"event"}, {"event"})
        self.put("later")
        # The numbers of the former store come again.
        until(lambda: follower.lines[-1].endswith(" item later"), "the event")
        numbers = [int(line.split(" ")[1]) for line in follower.lines[gap:] if line.startswith("event ")]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_a_number_of_another_epoch_is_a_gap_at_once(self):
        follower = self.follow(1, "0f3ac8e1-5c39-4a0c-9d57-6a5be2f1c1aa")
        follower.await_line("ok ")
        self.assertEqual(follower.lines[0], "gap gone")

    def test_topics_values_and_refusals(self):
        account = self.follow(-2, "", "account", "Device")
        account.await_line("ok ")
        self.assertEqual({line.split(" ")[1] for line in account.lines[:-1]}, {"account"})
        self.put("a")
        self.daemon.ask("account set alice")
        account.await_line("event ")
        self.assertEqual(account.lines[-1].split(" ")[2], "account")
        refused = self.follow(-1, "", "frob")
        refused.await_line("error 22 bad-argument")
        refused = self.follow(1_000_000)
        refused.await_line("error 22 bad-argument", 2)

    def test_a_follower_that_stops_reading_gets_every_event_later(self):
        follower = self.follow(0, "", "item")
        follower.await_line("ok 0 ")
        os.kill(follower.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, follower.process.pid, signal.SIGCONT)
        # More than the megabyte that the daemon keeps for a subscriber, and fewer than the events that it keeps.
        service = "s" * 250
        for _ in range(12):
            self.put(*(f"{'a' * 240}-{number}" for number in range(300)), service=service)
        first, last = self.last() - 3_600 + 1, self.last()
        os.kill(follower.process.pid, signal.SIGCONT)
        follower.await_line(f"event {last} ")
        self.assertEqual(follower.events()[-3_600:], list(range(first, last + 1)))
        self.assertNotIn("lost", follower.lines)


OK = b"OK 5 epoch=e\n"
EVENT = b"EVENT 6 account changed value=a account=a\n"


class PlayedEventTest(unittest.TestCase):
    """A played daemon: the real one sends these lines never, or only at a moment that no test can choose."""

    def follow(self, *turns, words=(0,)):
        server = PlayedDaemon(*turns)
        follower = Follower(server.socket, *words)
        self.addCleanup(server.close)
        self.addCleanup(follower.end)
        return follower, server

    def test_an_event_that_comes_again_is_skipped(self):
        follower, server = self.follow([OK + EVENT + EVENT, 0.05, None], [OK + EVENT + EVENT.replace(b"6", b"7")])
        follower.await_line("event 7 ")
        self.assertEqual(follower.lines, ["ok 0 e", "event 6 account a", "lost", "ok 6 e", "event 7 account a"])
        self.assertEqual(server.lines[1], b'"subscribe" since="6" epoch="e"\n')

    def test_a_lag_line_brings_back_the_events_before_it(self):
        lag = b"EVENT 9 lag missed=2 from=7\n" + EVENT.replace(b"6", b"10")
        follower, server = self.follow([OK + EVENT + lag], [OK + EVENT.replace(b"6", b"8")])
        follower.await_line("event 8 ")
        self.assertEqual(follower.events(), [6, 8])
        self.assertEqual(server.lines[1], b'"subscribe" since="7" epoch="e"\n')
        self.assertNotIn("lost", follower.lines)

    def test_values_that_break_off_come_again(self):
        gone, rows = b"ERR gone text\n", b"* account value=a\n* device value=b\n"
        follower, server = self.follow([gone, rows, 0.05, None], [rows + OK], words=(3, "old"))
        follower.await_line("ok ")
        rows_seen = ["row account", "row device"]
        self.assertEqual(follower.lines, ["gap gone", *rows_seen, "lost", *rows_seen, "ok 5 e"])
        self.assertEqual(server.lines, [b'"subscribe" since="3" epoch="old"\n'] + [b'"subscribe" snapshot="yes"\n'] * 2)

    def test_a_daemon_that_is_full_or_not_ready_is_asked_again(self):
        busy, early = b"ERR busy text\n", b"ERR unavailable text\n"
        follower, _ = self.follow([OK, 0.05, None], [busy, None], [early, None], [OK + EVENT])
        follower.await_line("event 6 ")
        self.assertEqual(follower.lines, ["ok 0 e", "lost", "ok 0 e", "event 6 account a"])

    def test_a_store_without_epoch_that_began_again_is_a_gap(self):
        refusal = b"ERR bad-argument since\n"
        follower, server = self.follow([b"OK 5\n" + EVENT, 0.05, None], [refusal, b"OK 1\n"], words=(-1,))
        follower.await_line("ok 1 ")
        self.assertEqual(follower.lines[-3:], ["lost", "gap bad-argument", "ok 1 (null)"])
        self.assertEqual(server.lines[1:], [b'"subscribe" since="6"\n', b'"subscribe" snapshot="yes"\n'])

    def test_broken_lines_are_errors_and_the_follower_goes_on(self):
        broken = [
            b"OK\n", b"OK x\n", b"OK 99999999999999999999 epoch=e\n", b"OK -1\n", b"OK 5 epoch=" + b"e" * 300 + b"\n",
            EVENT, b"* a\n" + EVENT, OK + OK, OK + b"* a\n", OK + b"EVENT x account\n", OK + b"EVENT 6\n",
            OK + b"EVENT -6 a b\n", OK + b"EVENT 9 lag missed=2\n", OK + b"EVENT 9 lag from=x\n", OK + b"x" * 600_000,
        ]
        for sent in broken:
            with self.subTest(sent[:40]):
                follower, _ = self.follow([sent], [OK + EVENT])
                follower.await_line("event 6 ")
                errors = [line for line in follower.lines if line.startswith("error ")]
                self.assertEqual(errors, ["error 90 " if len(sent) > 1_000 else "error 74 "])

    def test_a_subscription_without_an_answer_is_tried_again(self):
        follower, _ = self.follow([OK, 0.05, None], [b""], [OK + EVENT])
        follower.await_line("event 6 ")
        self.assertEqual(follower.lines, ["ok 0 e", "lost", "ok 0 e", "event 6 account a"])

    def test_the_attempts_become_rarer(self):
        follower, server = self.follow([b"", None])
        follower.await_line("error 104 ", 5)
        count = len(server.lines)
        until(lambda: len(server.lines) >= count + 3, "three attempts")
        self.assertLess(len(server.lines), 40)


if __name__ == "__main__":
    unittest.main(verbosity=2)
