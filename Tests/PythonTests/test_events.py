#!/usr/bin/python3
"""Events over kills and restarts of the daemon, without loss or repetition, with both clients."""

import asyncio, shutil, signal, threading, unittest

from support import PATIENCE, DaemonCase

from identityd import Event, Following, Gap, Interrupted, aio, errors, verbs


class Blocking:
    """Follows with the client that blocks."""

    def __init__(self, test, *topics, **options):
        self.events = test.new_client(timeout=5).events(*topics, **options)
        test.addCleanup(self.events.close)

    def next(self):
        return self.events.next(PATIENCE)


class Asyncio:
    """Follows with the client for asyncio, and cancels a wait for each step once."""

    def __init__(self, test, *topics, **options):
        self.runner = asyncio.Runner()
        self.assertRaises = test.assertRaises
        test.addCleanup(self.runner.close)
        self.events = aio.Client(test.daemon.socket, timeout=5).events(*topics, **options)
        test.addCleanup(lambda: self.runner.run(self.events.aclose()))

    def next(self):
        return self.runner.run(self.step())

    async def step(self):
        waiting = asyncio.ensure_future(anext(self.events))
        await asyncio.sleep(0)
        if not waiting.cancel():
            return waiting.result()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        return await asyncio.wait_for(anext(self.events), PATIENCE)


class EventTest(DaemonCase):
    def put(self, account):
        self.client.ask(verbs.item_put(service="s", account=account, data=b"x"))

    def following(self, follower):
        """The next event, and the steps before it."""
        steps = []
        while True:
            steps.append(follower.next())
            if isinstance(steps[-1], Event):
                return steps.pop(), steps

    def test_events_come_once_each_over_kills_and_restarts(self):
        for kind in (Blocking, Asyncio):
            with self.subTest(kind.__name__):
                follower = kind(self, "item")
                self.assertIsInstance(follower.next(), Following)
                numbers = []
                for round_ in range(3):
                    for count in range(5):
                        self.put(f"{kind.__name__}-{round_}-{count}")
                        event, steps = self.following(follower)
                        numbers.append(event.sequence)
                        self.assertEqual(
                            (event.name, event.attributes["account"]), ("added", f"{kind.__name__}-{round_}-{count}")
                        )
                        if count == 0 and round_ > 0:
                            self.assertEqual([type(step) for step in steps], [Interrupted, Following])
                    self.assertEqual(follower.events.position, (event.sequence, event.epoch))
                    self.daemon.end(signal.SIGKILL if round_ else signal.SIGTERM)
                    self.daemon.start()
                self.assertEqual(numbers, sorted(set(numbers)))

    def test_events_of_a_pause_come_after_a_stored_position(self):
        for kind in (Blocking, Asyncio):
            with self.subTest(kind.__name__):
                self.put("first")
                state = self.client.ask(verbs.status())
                for name in ("a", "b", "c"):
                    self.put(kind.__name__ + name)
                self.daemon.end()
                self.daemon.start()
                follower = kind(self, "item", since=state.last_event, epoch=state.epoch)
                self.assertEqual(follower.next(), Following(state.last_event, state.epoch))
                accounts = [follower.next().attributes["account"] for _ in range(3)]
                self.assertEqual(accounts, [kind.__name__ + name for name in ("a", "b", "c")])

    def test_a_new_store_is_a_gap_with_the_current_values(self):
        for kind in (Blocking, Asyncio):
            with self.subTest(kind.__name__):
                follower = kind(self, "item")
                self.assertIsInstance(follower.next(), Following)
                self.put("lost")
                self.following(follower)
                self.daemon.end()
                shutil.rmtree(self.daemon.state)
                self.daemon.start()
                # The new store reaches the number of the old one.
                for count in range(5):
                    self.put(f"new{count}")
                steps = [follower.next() for _ in range(3)]
                self.assertEqual([type(step) for step in steps], [Interrupted, Gap, Following])
                self.assertEqual(
                    [value.attributes["account"] for value in steps[1].values], [f"new{n}" for n in range(5)]
                )
                self.assertEqual({value.topic for value in steps[1].values}, {"item"})
                self.put("later")
                event, _ = self.following(follower)
                self.assertEqual(event.attributes["account"], "later")
                self.assertEqual(event.epoch, steps[2].epoch)

    def test_a_number_of_another_epoch_is_a_gap(self):
        for kind in (Blocking, Asyncio):
            self.client.ask(verbs.get_device())
            follower = kind(self, since=1, epoch="another")
            gap = follower.next()
            self.assertIsInstance(gap, Gap)
            self.assertIn("account", {value.topic for value in gap.values})
            self.assertIsInstance(follower.next(), Following)

    def test_a_number_that_was_never_reached_and_an_unknown_topic_are_refused(self):
        for kind in (Blocking, Asyncio):
            for topics, options in (((), {"since": 1_000_000}), (("frob",), {})):
                follower = kind(self, *topics, **options)
                with self.assertRaises(errors.BadArgument):
                    follower.next()
                with self.assertRaises((StopIteration, StopAsyncIteration)):
                    follower.next()

    def test_without_a_daemon_following_ends_at_once(self):
        self.daemon.end()
        for kind in (Blocking, Asyncio):
            with self.assertRaises(errors.Unreachable):
                kind(self).next()

    def test_a_time_limit_loses_no_event(self):
        events = self.client.events("item")
        self.addCleanup(events.close)
        events.next(PATIENCE)
        for count in range(3):
            with self.assertRaises(errors.TimedOut):
                events.next(0.05)
            self.put(str(count))
            self.assertEqual(events.next(PATIENCE).attributes["account"], str(count))

    def test_a_reader_that_pauses_misses_nothing(self):
        """So many events that the daemon drops the subscriber, and then sends a lag line."""
        events = self.client.events("item")
        self.addCleanup(events.close)
        self.assertIsInstance(events.next(PATIENCE), Following)
        long, count = "l" * 250, 4_000
        writers = [self.new_client() for _ in range(8)]

        def write(client, first):
            for number in range(first, count, len(writers)):
                client.ask(verbs.item_put(service=long, account=f"{number % 50}{long[:200]}", data=b"x"))

        threads = [threading.Thread(target=write, args=one) for one in zip(writers, range(8))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = [step.sequence for step in (events.next(PATIENCE) for _ in range(count)) if isinstance(step, Event)]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        self.assertEqual(len(numbers), count)

    def test_topics_are_the_only_ones_that_come(self):
        follower = Blocking(self, "token")
        follower.next()
        self.put("a")
        self.client.ask(verbs.token_put("fcm", "t"))
        self.assertEqual(follower.next().topic, "token")


if __name__ == "__main__":
    unittest.main()
