"""Two real processes on one ring, and what is left when one of them is killed."""

import signal

import numpy as np
import ombus
import pytest

PUBLISH_ROWS = """
import sys, numpy as np, ombus
uri, rows, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with ombus.Producer(uri, capacity=1024) as producer:
    print("ready")
    sys.stdin.readline()
    for start in range(0, rows, size):
        producer.publish_batch(np.arange(start, start + size, dtype="<u8"))
    print("done", producer.stats().records_published)
    sys.stdin.readline()
"""

PUBLISH_FOR_EVER = """
import sys, ombus
with ombus.Producer(sys.argv[1], capacity=64) as producer:
    print("ready")
    while True:
        producer.publish(str(producer.last_seq + 1).encode())
"""

HOLD_A_PLACE = """
import sys, ombus
consumer = ombus.Consumer(sys.argv[1])
print(consumer.index)
sys.stdin.readline()
print(consumer.poll())
"""


def test_nothing_is_lost_between_two_processes(uri, child):
    rows = 1_000_000
    producer = child(PUBLISH_ROWS, uri, str(rows), "10000")
    assert producer.line() == "ready"
    with ombus.Consumer(uri) as consumer:
        producer.tell("go")
        expected = 0
        while expected < rows:
            assert consumer.wait(60)
            batch = consumer.poll_batch()
            numbers = batch.to_numpy("<u8")
            assert (numbers == np.arange(expected, expected + len(batch), dtype="<u8")).all()
            assert (batch.seqs == numbers + 1).all()
            expected += len(batch)
        assert producer.line() == f"done {rows}"
        assert consumer.poll() is None
    producer.tell("end")
    producer.finish()


def test_single_records_between_two_processes(uri, child):
    producer = child(PUBLISH_ROWS, uri, "20000", "1")
    producer.line()
    with ombus.Consumer(uri, timeout=60) as consumer:
        producer.tell("go")
        for number in range(20_000):
            record = next(consumer)
            assert (record.seq, int.from_bytes(record.payload, "little")) == (number + 1, number)
    producer.tell("end")
    producer.finish()


def test_a_killed_consumer_does_not_hold_the_ring(uri, child):
    with ombus.Producer(uri, capacity=8, max_consumers=1) as producer:
        consumer = child(HOLD_A_PLACE, uri)
        assert consumer.line() == "0"
        producer.publish_batch([b"x"] * 8)
        assert producer.try_publish(b"y") is None
        consumer.kill()
        assert producer.publish(b"y", timeout=60) == 9
        with ombus.Consumer(uri) as successor:
            producer.publish(b"z")
            assert successor.poll() == ombus.Record(10, 1, b"z")


def test_a_stopped_consumer_is_passed_over_after_staleness(uri, child):
    with ombus.Producer(uri, capacity=8, staleness=0.05) as producer:
        consumer = child(HOLD_A_PLACE, uri)
        consumer.line()
        consumer.signal(signal.SIGSTOP)
        assert producer.publish_batch([b"x"] * 20, timeout=60) == 20
        assert ombus.inspect(uri).consumers[0].state is ombus.ConsumerState.PASSED_OVER
        consumer.signal(signal.SIGCONT)
        consumer.tell("poll")
        with pytest.raises(AssertionError, match=r"ombus\.errors\.ConsumerStale"):
            consumer.line()


def test_a_killed_producer_is_followed_by_the_next(uri, child):
    producer = child(PUBLISH_FOR_EVER, uri)
    producer.line()
    with ombus.Consumer(uri, timeout=60) as consumer:
        first = next(consumer).seq
        for seq in range(first + 1, first + 1000):
            assert next(consumer) == ombus.Record(seq, 1, str(seq).encode())
        producer.kill()
        with ombus.Producer(uri, capacity=64) as successor:
            last_of_the_killed = successor.last_seq
            with pytest.raises(ombus.EpochChanged):  # after all that the killed one left, which may fill the ring
                while True:
                    seq = next(consumer).seq
            assert seq == last_of_the_killed
            successor.publish(b"next")
            assert next(consumer) == ombus.Record(last_of_the_killed + 1, 1, b"next")


def test_a_ring_has_one_producer(uri, child):
    producer = child(PUBLISH_ROWS, uri, "1", "1")
    producer.line()
    with pytest.raises(ombus.RingInUse) as caught:
        ombus.Producer(uri, capacity=1024)
    assert caught.value.code == -826
    assert f"pid {producer.pid}" in str(caught.value)
    producer.kill()
    ombus.Producer(uri, capacity=1024).close()
