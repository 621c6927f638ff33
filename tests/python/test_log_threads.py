"""Threads on one handle, closing meanwhile, signals, and memory given back."""

import contextlib
import gc
import threading
import time
import tracemalloc

import numpy as np
import ombus
import pytest


def run(*calls):
    """Each in a thread; what they returned or raised."""
    outcomes = [None] * len(calls)

    def body(i):
        try:
            outcomes[i] = calls[i]()
        except BaseException as error:
            outcomes[i] = error

    threads = [threading.Thread(target=body, args=[i]) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_threads_publish_one_after_the_other(log_uri, log_dir):
    with ombus.Producer(log_uri, sync="each") as producer:
        outcomes = run(
            *[lambda name=name: [producer.publish(b"%d" % name) for _ in range(50)] for name in range(3)],
            lambda: [producer.publish_batch([b"3"] * 10) for _ in range(5)],
        )
    assert all(sorted(set(seqs)) == seqs for seqs in outcomes)
    payloads = [record.payload for record in ombus.Log(log_dir)]
    assert [payloads.count(b"%d" % name) for name in range(4)] == [50] * 4


def test_many_wait_for_the_disk_while_others_publish(log_uri):
    with ombus.Producer(log_uri, linger_ms=60_000, linger_records=10**6) as producer:

        def durable():
            for _ in range(20):
                seq = producer.publish(b"x")
                producer.wait_durable(seq)
                assert producer.durable_seq >= seq

        assert run(durable, durable, durable, lambda: [producer.sync() for _ in range(20)] and None) == [None] * 4


def test_waiting_for_what_was_never_appended(log_uri):
    with ombus.Producer(log_uri) as producer:
        producer.publish(b"x")
        with pytest.raises(ombus.Error):
            producer.wait_durable(5, timeout=0.01)
        with pytest.raises(ombus.InvalidArgument):
            producer.wait_durable(-1)


@pytest.mark.parametrize("call", [lambda consumer: consumer.wait(), next])
def test_closing_a_consumer_from_another_thread_ends_its_wait(log_uri, call):
    ombus.Producer(log_uri).close()
    consumer = ombus.Consumer(log_uri)

    def close():
        with contextlib.suppress(ombus.HandleBusy):
            while True:
                consumer.poll()
        consumer.close()

    outcome, closed = run(lambda: call(consumer), close)
    assert isinstance(outcome, ombus.Closed)
    assert closed is None
    assert consumer.closed


def test_everything_at_once_never_crashes(log_uri, log_dir):
    producer = ombus.Producer(log_uri, segment_size=16 << 10, retain_bytes=64 << 10)
    consumer = ombus.Consumer(log_uri)
    log = ombus.Log(log_dir)
    stop = threading.Event()
    rows = np.zeros(500, "<u8")

    def loop(call):
        while not stop.is_set():
            with contextlib.suppress(ombus.Error, StopIteration):
                call()

    def end():
        time.sleep(1)
        producer.close()
        time.sleep(0.1)
        stop.set()

    calls = (
        lambda: producer.publish(b"x"),
        lambda: producer.publish_batch(rows),
        lambda: producer.wait_durable(timeout=0.01),
        producer.sync,
        producer.stats,
        lambda: consumer.wait(0.001),
        consumer.poll,
        lambda: consumer.poll_batch(10_000),
        lambda: consumer.seek(max(producer.last_seq - 100, 1)),
        lambda: log.last_seq and len(log[-1000:].to_arrow()),
        lambda: repr(consumer),
    )
    assert run(*[lambda call=call: loop(call) for call in calls], end) == [None] * (len(calls) + 1)
    consumer.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda producer, index: producer.publish(b"x", index),
        lambda producer, index: producer.publish_batch([b"x"], seq=index),
        lambda producer, index: producer.publish_batch(b"xx", itemsize=index),
        lambda producer, index: producer.wait_durable(index),
    ],
)
def test_an_argument_that_closes_the_handle_cannot_hurt(log_uri, call):
    producer = ombus.Producer(log_uri)

    class Index:
        def __index__(self):
            producer.close()
            return 1

    with pytest.raises(ombus.Closed):
        call(producer, Index())


def check_no_growth(call, rounds=300):
    for _ in range(20):
        call()
    gc.collect()
    tracemalloc.start()
    for _ in range(20):
        call()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(rounds):
        call()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < rounds * 16, f"{grown} bytes"


def refuse(call, kind):
    with pytest.raises(kind):
        call()


def test_nothing_leaks(log_uri, log_dir):
    with ombus.Producer(log_uri, sync="none") as producer, ombus.Consumer(log_uri) as consumer:
        log = ombus.Log(log_dir)

        def call():
            producer.publish(bytearray(b"12345678"))
            producer.publish_batch([b"12345678", bytearray(b"12345678")])
            producer.publish_batch(np.zeros(2, "<u8"))
            refuse(lambda: producer.publish(b"x", seq=1), ombus.LogSequenceOrder)
            refuse(lambda: producer.publish_batch([b"x", 5]), TypeError)
            refuse(lambda: log[10**9], ombus.NoSuchRecord)
            consumer.poll()
            consumer.poll_batch()
            next(iter(log[1:3]))
            log[1:3].to_numpy("<u8"), len(log), log.__arrow_c_stream__()
            producer.stats(), log.info(), log.segments()

        check_no_growth(call)


def test_handles_do_not_leak(log_uri, log_dir):
    def call():
        with ombus.Producer(log_uri, sync="none"), ombus.Consumer(log_uri), ombus.Log(log_dir):
            refuse(lambda: ombus.Producer(log_uri), ombus.LogLocked)

    check_no_growth(call, rounds=50)
