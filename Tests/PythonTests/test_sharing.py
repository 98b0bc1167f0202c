#!/usr/bin/python3
"""Clients that threads, tasks and forked processes share, and requests that are cancelled."""

import asyncio, os, signal, threading, unittest

from support import DaemonCase

from identityd import Following, aio, errors, verbs


class SharingTest(DaemonCase):
    def test_threads_get_their_own_answers(self):
        faults = []

        def use(number):
            try:
                for count in range(50):
                    data = f"{number}-{count}".encode()
                    self.client.ask(verbs.item_put(service="s", account=str(number), data=data))
                    assert self.client.ask(verbs.item_read(service="s", account=str(number))).data == data
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])

    def test_tasks_get_their_own_answers_when_others_are_cancelled(self):
        async def use(client, number):
            for count in range(20):
                data = f"{number}-{count}".encode()
                await client.ask(verbs.item_put(service="s", account=str(number), data=data))
                read = await client.ask(verbs.item_read(service="s", account=str(number)))
                assert read.data == data, (read.data, data)

        async def everything():
            async with aio.Client(self.daemon.socket) as client:
                tasks = [asyncio.ensure_future(use(client, number)) for number in range(20)]
                for number in range(0, 20, 2):
                    await asyncio.sleep(0.002)
                    tasks[number].cancel()
                return await asyncio.gather(*tasks, return_exceptions=True)

        results = asyncio.run(everything())
        self.assertEqual(results[1::2], [None] * 10)
        for result in results[0::2]:
            self.assertTrue(result is None or isinstance(result, asyncio.CancelledError), result)

    def test_a_request_that_is_cancelled_after_each_of_its_waits_leaves_no_answer_behind(self):
        async def everything():
            async with aio.Client(self.daemon.socket) as client:
                for turns in range(12):
                    first = asyncio.ensure_future(client.ask(verbs.get_uuids(count=10_000)))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    first.cancel()
                    self.assertEqual((await client.ask(verbs.check("x"))).result, "invalid")

        asyncio.run(everything())

    def test_a_request_that_is_interrupted_leaves_no_answer_behind(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for count in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 * (count + 1) / 4)
                self.client.ask(verbs.get_uuids(count=10_000))
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self.assertEqual(self.client.ask(verbs.check("x")).result, "invalid")

    def in_child(self, use):
        """Runs a function in a forked process, and returns the bytes that it returns."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, use())
            except BaseException as error:
                os.write(writing, repr(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading, "rb") as file:
            data = file.read()
        os.waitpid(child, 0)
        return data

    def test_a_forked_process_has_a_connection_of_its_own(self):
        def session(client):
            return str(client.ask(verbs.get_session()).uuid).encode()

        own = session(self.client)
        events = self.client.events()
        self.addCleanup(events.close)
        self.assertIsInstance(events.next(5), Following)
        release = threading.Event()
        # A lock that another thread of the parent holds does not stop the child.
        holder = threading.Thread(
            target=lambda: self.client._lock.acquire() and release.wait() and self.client._lock.release()
        )
        holder.start()
        child = self.in_child(lambda: session(self.client))
        release.set()
        holder.join()
        self.assertEqual(len(child), 36, child)
        if self.client.ask(verbs.whoami()).unit is None:
            self.assertNotEqual(child, own)
        self.assertEqual(session(self.client), own)
        pid = self.in_child(lambda: b"%d %d" % (self.client.ask(verbs.whoami()).pid, os.getpid()))
        self.assertEqual(*pid.split(b" "))
        # A child that goes on with its parent's events gets them on a connection of its own.
        followed = self.in_child(
            lambda: type(events.next(5)).__name__.encode() + type(events.next(5)).__name__.encode()
        )
        self.assertEqual(followed, b"InterruptedFollowing")
        self.client.ask(verbs.get_installation())
        self.assertEqual(events.next(5).topic, "app")

    def test_a_client_of_asyncio_goes_on_in_a_forked_process(self):
        client = aio.Client(self.daemon.socket)

        async def pid():
            return (await client.ask(verbs.whoami())).pid

        self.assertEqual(asyncio.run(pid()), os.getpid())
        found = self.in_child(lambda: b"%d %d" % (asyncio.run(pid()), os.getpid()))
        self.assertEqual(*found.split(b" "))
        self.assertEqual(asyncio.run(pid()), os.getpid())
        asyncio.run(client.close())

    def test_a_client_goes_on_after_each_end_of_its_connection(self):
        async def ask(client, request):
            return await client.ask(request)

        other = aio.Client(self.daemon.socket)
        with asyncio.Runner() as runner:
            for _ in range(3):
                self.client.ask(verbs.quit())
                self.assertEqual(self.client.ask(verbs.renew("device")).previous is None, _ == 0)
                runner.run(ask(other, verbs.quit()))
                runner.run(ask(other, verbs.renew("device")))
                self.daemon.end()
                self.daemon.start()
            self.daemon.end()
            for asked in (lambda: self.client.ask(verbs.ping()), lambda: runner.run(ask(other, verbs.ping()))):
                with self.assertRaises(errors.Unreachable) as raised:
                    asked()
                self.assertTrue(raised.exception.is_worth_retrying)
            runner.run(other.close())

    def test_a_subscription_cannot_be_asked_for(self):
        for request in (verbs.subscribe(), verbs.subscribe_snapshot(), verbs.unsubscribe()):
            with self.assertRaises(errors.BadArgument):
                self.client.ask(request)


if __name__ == "__main__":
    unittest.main()
