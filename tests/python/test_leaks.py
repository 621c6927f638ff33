"""The extension gives back all it takes: references, buffers and memory."""

import gc
import sys
import tracemalloc

import numpy as np
import ombus


def check_no_growth(call):
    for _ in range(20):
        call()
    gc.collect()
    tracemalloc.start()
    for _ in range(20):
        call()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        call()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 1000 * 16, f"{grown} bytes"  # less than the smallest object per call


def refuse(call, kind):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind} was not raised")


def test_publish_and_poll(uri):
    with ombus.Producer(uri, capacity=8) as producer, ombus.Consumer(uri) as consumer:

        def call():
            producer.publish(bytearray(b"12345"), type=3)
            list(consumer.poll())
            producer.publish(b"12345", seq=producer.last_seq + 1000)
            refuse(consumer.poll, ombus.GapDetected)
            refuse(lambda: producer.publish(bytes(1000)), ombus.RecordTooLarge)
            refuse(lambda: producer.publish("x"), TypeError)
            refuse(lambda: producer.publish(b"x", 300), ombus.InvalidArgument)
            refuse(lambda: producer.publish_batch([bytearray(b"x"), b"y", 5]), TypeError)
            producer.publish_batch([bytearray(b"x"), b"y"])
            producer.publish_batch(np.arange(3, dtype="<u4"))
            len(consumer.poll_batch().payloads[0])
            producer.stats(), consumer.wal_seq, hash(ombus.Record(1, 2, b"x"))
            ombus.inspect(uri), ombus.rings()

        check_no_growth(call)


def test_zero_copy(uri):
    with ombus.Producer(uri, capacity=8) as producer, ombus.Consumer(uri, zero_copy=True) as consumer:

        def call():
            producer.publish_batch(np.arange(4, dtype="<u4"))
            batch = consumer.poll_batch()
            array = batch.to_numpy("<u4")
            refuse(batch.release, BufferError)
            del array
            batch.release()

        check_no_growth(call)


def test_handles(uri):
    def call():
        with ombus.Producer(uri, keep=False), ombus.Consumer(uri):
            pass
        refuse(lambda: ombus.Consumer(uri), ombus.CannotOpen)

    check_no_growth(call)


def test_references_of_payloads(uri):
    payload = b"a payload of its own"
    before = sys.getrefcount(payload)
    with ombus.Producer(uri) as producer:
        for _ in range(100):
            producer.publish(payload)
            producer.publish_batch([payload])
            ombus.Record(1, 1, payload)
    assert sys.getrefcount(payload) == before
