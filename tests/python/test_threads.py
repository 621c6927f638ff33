"""One handle and several threads: never a crash, and the GIL is free while a call waits."""

import contextlib
import threading
import time

import numpy as np
import ombus
import pytest


class Call(threading.Thread):
    """Runs something in a thread and keeps what came of it."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:
            self.result = error

    def outcome(self):
        self.join()
        return self.result


@pytest.fixture
def full(uri):
    with ombus.Producer(uri, capacity=4) as producer, ombus.Consumer(uri, timeout=0) as consumer:
        producer.publish_batch([b"x"] * 4)
        yield producer, consumer


def wait_until_inside(producer):
    """Until another thread waits in a call of this producer."""
    while True:
        try:
            producer.publish(b"", timeout=0)
        except ombus.Timeout as error:
            if "another thread was waiting to publish" in str(error):
                return


@pytest.mark.parametrize(
    "call",
    [lambda p: p.publish(b"y"), lambda p: p.publish_batch([b"y"]), lambda p: p.publish_batch(np.zeros(1, "<u8"))],
)
def test_others_run_while_publish_waits(full, call):
    producer, consumer = full
    waiting = Call(call, producer)
    wait_until_inside(producer)
    assert producer.try_publish(b"z") is None
    assert producer.stats().head == 4  # looking is allowed
    assert consumer.poll().seq == 1
    assert waiting.outcome() == 5


def test_others_run_while_a_consumer_waits(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        for call in (lambda: consumer.wait(), lambda: next(consumer)):
            waiting = Call(call)
            with pytest.raises(ombus.HandleBusy, match="another thread waits in it"):
                while True:
                    consumer.poll()
            assert consumer.wal_seq >= 0
            producer.publish(b"x")
            assert waiting.outcome() in (True, ombus.Record(2, 1, b"x"), ombus.Record(1, 1, b"x"))
            consumer.poll()


def test_threads_publish_one_after_the_other(uri):
    threads, each = 4, 500
    with ombus.Producer(uri, capacity=8) as producer, ombus.Consumer(uri, timeout=60) as consumer:
        calls = [
            Call(lambda name=name: [producer.publish(b"%d" % name) for _ in range(each)] and None)
            for name in range(threads)
        ]
        records = [next(consumer) for _ in range(threads * each)]
        assert [call.outcome() for call in calls] == [None] * threads
    assert [record.seq for record in records] == list(range(1, threads * each + 1))
    for name in range(threads):
        assert sum(record.payload == b"%d" % name for record in records) == each


def test_batches_of_threads_stay_whole(uri):
    threads, each, size = 3, 20, 50
    with ombus.Producer(uri, capacity=16) as producer, ombus.Consumer(uri, timeout=60) as consumer:
        calls = [
            Call(lambda name=name: [producer.publish_batch([b"%d" % name] * size) for _ in range(each)] and None)
            for name in range(threads)
        ]
        names = [next(consumer).payload for _ in range(threads * each * size)]
        assert [call.outcome() for call in calls] == [None] * threads
    for start in range(0, len(names), size):
        assert len(set(names[start : start + size])) == 1


def test_waiting_for_another_thread_counts_as_waiting(full):
    producer, consumer = full
    waiting = Call(lambda: producer.publish(b"y"))
    wait_until_inside(producer)
    for call in (lambda: producer.publish(b"z", timeout=0.02), lambda: producer.publish_batch([b"z"], timeout=0.02)):
        with pytest.raises(ombus.Timeout, match="another thread was waiting to publish"):
            call()
    consumer.poll()
    assert waiting.outcome() == 5


def test_close_from_another_thread_ends_the_wait(full):
    producer, consumer = full
    waiting = Call(lambda: producer.publish(b"y"))
    wait_until_inside(producer)
    producer.close()
    assert isinstance(waiting.outcome(), ombus.Closed)
    assert producer.closed
    assert len(list(consumer)) == 4


def test_destroy_from_another_thread_ends_the_wait(full, uri):
    producer, _ = full
    waiting = Call(lambda: producer.publish_batch([b"y"] * 5))
    wait_until_inside(producer)
    producer.destroy()
    assert isinstance(waiting.outcome(), ombus.Closed)
    with pytest.raises(ombus.CannotOpen):
        ombus.inspect(uri)


@pytest.mark.parametrize("call", [lambda c: c.wait(), next])
def test_closing_a_consumer_from_another_thread_ends_its_wait(uri, call):
    with ombus.Producer(uri), ombus.Consumer(uri) as consumer:
        waiting = Call(call, consumer)
        with pytest.raises(ombus.HandleBusy):
            while True:
                consumer.poll()
        consumer.close()
        assert isinstance(waiting.outcome(), ombus.Closed)
        assert consumer.closed


def test_everything_at_once_never_crashes(uri):
    """Threads that do whatever they like to one pair of handles; typed errors are all that may come of it."""
    producer = ombus.Producer(uri, capacity=8, slot_size=64)
    consumer = ombus.Consumer(uri, zero_copy=True, on_gap="ignore")
    stop = threading.Event()
    rows = np.zeros(50, "<u8")

    def loop(call):
        while not stop.is_set():
            with contextlib.suppress(ombus.Error, BufferError, StopIteration):
                call()

    def batch():
        found = consumer.poll_batch(4)
        bytes(found.payloads[0]) if len(found) else found.release()

    calls = [
        Call(loop, call)
        for call in (
            lambda: producer.publish(b"x", timeout=0.001),
            lambda: producer.publish_batch(rows, timeout=0.001),
            producer.stats,
            lambda: consumer.wait(0.001),
            consumer.poll,
            batch,
            lambda: repr(consumer),
        )
    ]
    time.sleep(1)
    producer.close()
    time.sleep(0.1)
    stop.set()
    assert [call.outcome() for call in calls] == [None] * len(calls)
    consumer.close()
