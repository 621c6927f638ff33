"""Producer("shm://name?log=/dir"): into the log first, then to the ring."""

import threading

import numpy as np
import ombus
import pytest


@pytest.fixture
def both(uri, log_dir):
    return f"{uri}?log={log_dir}"


def test_records_are_in_both(both, uri, log_dir):
    with ombus.Producer(both, capacity=64) as producer, ombus.Consumer(uri) as consumer:
        assert producer.publish(b"one") == 1
        assert producer.publish_batch(np.arange(3, dtype="<u8"), type=4) == 4
        assert producer.publish_batch([b"a", b"b"]) == 6
        from_ring = [consumer.poll() for _ in range(6)]
        assert from_ring == list(ombus.Log(log_dir))
        assert [record.seq for record in from_ring] == [1, 2, 3, 4, 5, 6]
        stats = producer.stats()
        assert (stats.records_published, stats.head, stats.lag, stats.publish_skipped) == (6, 6, 0, 0)
        producer.wait_durable()
        assert producer.durable_seq == 6
    assert ombus.inspect(uri).last_wal_seq == 6


def test_numbers_go_on_after_the_larger_of_both(both, uri, log_dir):
    with ombus.Producer(uri, capacity=64) as producer:
        producer.publish(b"ring only", seq=100)
    with ombus.Producer(both, capacity=64) as producer:
        assert producer.publish(b"x") == 101
        assert producer.publish(b"y") == 102
    with ombus.Producer(f"log://{log_dir}") as producer:
        producer.publish(b"log only", seq=500)
    with ombus.Producer(both, capacity=64) as producer:
        assert producer.publish_batch([b"z"] * 2) == 502


def test_what_does_not_fit_the_ring_is_in_the_log(both, uri, log_dir):
    with ombus.Producer(both, slot_size=64, capacity=64) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(b"small")
        producer.publish(bytes(1000))
        producer.publish(bytes(100_000))
        producer.publish(b"small")
        assert producer.stats().publish_skipped == 2
        assert consumer.poll().seq == 1
        with pytest.raises(ombus.GapDetected) as caught:
            consumer.poll()
        gap = ombus.Log(log_dir)[2 : caught.value.record.seq]
        assert [len(record.payload) for record in gap] == [1000, 100_000]


def test_a_full_ring_makes_the_producer_wait_and_nothing_is_appended_meanwhile(both, uri, log_dir):
    with ombus.Producer(both, capacity=8) as producer, ombus.Consumer(uri) as consumer:
        producer.publish_batch([b"x"] * 8)
        assert producer.try_publish(b"y") is None
        with pytest.raises(ombus.Timeout):
            producer.publish(b"y", timeout=0.01)
        with pytest.raises(ombus.Timeout) as caught:
            producer.publish_batch([b"y"] * 3, timeout=0.01)
        assert caught.value.published == 0
        assert ombus.Log(log_dir).last_seq == producer.last_seq == 8
        consumer.poll_batch(2)
        with pytest.raises(ombus.Timeout) as caught:
            producer.publish_batch([b"y"] * 3, timeout=0.01)
        assert caught.value.published == 2
        assert ombus.Log(log_dir).last_seq == 10
        thread = threading.Timer(0.05, lambda: consumer.poll_batch(8))
        thread.start()
        assert producer.publish(b"z", timeout=60) == 11
        thread.join()


def test_a_dead_consumer_does_not_hold_it(both, uri, child):
    code = "import sys, ombus\nc = ombus.Consumer(sys.argv[1])\nprint('ready')\nsys.stdin.readline()"
    with ombus.Producer(both, capacity=8) as producer:
        consumer = child(code, uri)
        consumer.line()
        producer.publish_batch([b"x"] * 8)
        consumer.kill()
        assert producer.publish_batch([b"y"] * 20, timeout=60) == 28


def test_a_consumer_of_both_reads_the_log_from_its_end(both, log_dir):
    with ombus.Producer(both) as producer:
        producer.publish(b"before")
        with ombus.Consumer(both, timeout=60) as consumer:
            assert consumer.poll() is None
            producer.publish(b"after")
            assert next(consumer) == ombus.Record(2, 1, b"after")
        with ombus.Consumer(both, from_="first") as consumer:
            assert consumer.poll().payload == b"before"


def test_one_failing_leaves_the_other_alone(both, uri, log_dir, child):
    code = "import sys, ombus\np = ombus.Producer(sys.argv[1])\nprint('ready')\nsys.stdin.readline()"
    ring = child(code, uri)
    ring.line()
    with pytest.raises(ombus.RingInUse):
        ombus.Producer(both)
    ombus.Producer(f"log://{log_dir}").close()
    ring.kill()
    with ombus.Producer(f"log://{log_dir}"), pytest.raises(ombus.LogLocked):
        ombus.Producer(both)
    ombus.Producer(uri).close()
    with pytest.raises(ombus.CapacityNotPowerOfTwo):
        ombus.Producer(both, capacity=100)


def test_keep(both, uri, log_dir):
    with ombus.Producer(both, keep=False) as producer:
        producer.publish(b"x")
    with pytest.raises(ombus.CannotOpen):
        ombus.inspect(uri)
    assert len(ombus.Log(log_dir)) == 1
    producer = ombus.Producer(both)
    producer.destroy()
    with pytest.raises(ombus.CannotOpen):
        ombus.inspect(uri)


def test_closing_from_another_thread_ends_the_wait(both, uri, log_dir):
    producer = ombus.Producer(both, capacity=8)
    outcomes = []
    with ombus.Consumer(uri):
        producer.publish_batch([b"x"] * 8)

        def publish():
            try:
                producer.publish(b"y")
            except ombus.Closed as error:
                outcomes.append(error)

        thread = threading.Thread(target=publish)
        thread.start()
        while producer.try_publish(b"z") is None and thread.is_alive() and not producer.closed:
            producer.close()
            break
        thread.join()
    assert len(outcomes) == 1
    assert len(ombus.Log(log_dir)) == 8
