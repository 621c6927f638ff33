"""Producer: publishing one record at a time, its counters and its end."""

import array

import numpy as np
import ombus
import pytest


def read_all(consumer):
    return list(iter(consumer.poll, None))


def test_records_arrive_as_published(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        assert producer.publish(b"first") == 1
        assert producer.publish(b"second", 7) == 2
        assert producer.publish(b"", type=0) == 3
        assert read_all(consumer) == [
            ombus.Record(1, 1, b"first"),
            ombus.Record(2, 7, b"second"),
            ombus.Record(3, 0, b""),
        ]


@pytest.mark.parametrize(
    "payload",
    [
        b"12345678",
        bytearray(b"12345678"),
        memoryview(b"12345678"),
        array.array("q", [1]),
        np.int64(3),
        np.zeros(8, "u1"),
    ],
)
def test_anything_bytes_like_is_a_payload(uri, payload):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(payload)
        assert consumer.poll().payload == bytes(memoryview(payload))


@pytest.mark.parametrize("payload", ["text", 5, None, [b"x"]])
def test_anything_else_is_not(uri, payload):
    with ombus.Producer(uri) as producer:
        with pytest.raises(TypeError):
            producer.publish(payload)
        assert producer.last_seq == 0


def test_seq_goes_on_after_the_last(uri):
    with ombus.Producer(uri) as producer:
        assert producer.publish(b"", seq=41) == 41
        assert producer.publish(b"") == 42
        assert producer.publish(b"", 1, None) == 43
        assert producer.publish(b"", seq=np.uint64(2**64 - 1)) == 2**64 - 1
        with pytest.raises(ombus.InvalidArgument, match="wal_seq ends at"):
            producer.publish(b"")
        assert producer.publish(b"", seq=5) == 5


def test_a_new_producer_continues_the_ring(uri):
    with ombus.Producer(uri) as producer:
        producer.publish(b"", seq=10)
    with ombus.Producer(uri) as producer:
        assert producer.last_seq == 10
        assert producer.publish(b"") == 11


def test_a_ring_of_another_shape_continues_the_sequence(uri):
    with ombus.Producer(uri, capacity=16) as producer:
        producer.publish(b"", seq=10)
    with ombus.Producer(uri, capacity=32) as producer:
        assert producer.publish(b"") == 11
        assert ombus.inspect(uri).capacity == 32


@pytest.mark.parametrize(("name", "bad"), [("type", 256), ("type", -1), ("seq", -1), ("seq", 2**64)])
def test_a_number_out_of_range_is_named(uri, name, bad):
    with ombus.Producer(uri) as producer:
        with pytest.raises(ombus.InvalidArgument, match=f"{name} is {bad}, allowed are 0 to"):
            producer.publish(b"", **{name: bad})
        assert producer.stats().records_published == 0


@pytest.mark.parametrize("bad", [-1, float("nan")])
def test_a_bad_timeout_is_named(uri, bad):
    with ombus.Producer(uri) as producer, pytest.raises(ombus.InvalidArgument, match="timeout is"):
        producer.publish(b"", timeout=bad)


@pytest.mark.parametrize(
    ("arguments", "named", "why"),
    [
        ((), {}, "needs the argument 'payload'"),
        ((b"", 1, 2, 3, 4), {}, "at most 4 arguments"),
        ((b"",), {"payload": b""}, "'payload' twice"),
        ((b"",), {"kind": 1}, "no argument 'kind'"),
        ((b"", 1.5), {}, "float"),
    ],
)
def test_wrong_arguments_are_a_type_error(uri, arguments, named, why):
    with ombus.Producer(uri) as producer, pytest.raises(TypeError, match=why):
        producer.publish(*arguments, **named)


def test_a_full_ring_times_out_and_nothing_is_published(uri):
    with ombus.Producer(uri, capacity=4) as producer, ombus.Consumer(uri) as consumer:
        for _ in range(4):
            producer.publish(b"x")
        with pytest.raises(ombus.Timeout, match="is full") as caught:
            producer.publish(b"y", timeout=0)
        assert (caught.value.code, caught.value.published) == (-824, 0)
        with pytest.raises(ombus.Timeout):
            producer.publish(b"y", timeout=0.02)
        assert producer.try_publish(b"y") is None
        assert producer.last_seq == 4
        consumer.poll()
        assert producer.try_publish(b"y", type=9) == 5
        assert read_all(consumer)[-1] == ombus.Record(5, 9, b"y")


def test_without_consumers_nothing_blocks(uri):
    with ombus.Producer(uri, capacity=4) as producer:
        for _ in range(100):
            producer.publish(b"x")
        assert producer.stats() == ombus.ProducerStats(100, 100, 100, 100)


def test_stats_show_the_slowest_consumer(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as slow, ombus.Consumer(uri) as fast:
        for _ in range(5):
            producer.publish(b"x")
        read_all(fast)
        slow.poll()
        assert producer.stats() == ombus.ProducerStats(records_published=5, head=5, min_tail=1, last_seq=5)
        assert producer.stats().lag == 4


def test_close_leaves_the_ring_for_its_readers(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(b"x")
        producer.close()
        producer.close()
        assert producer.closed
        assert consumer.poll().payload == b"x"
        assert not ombus.inspect(uri).producer_alive


def test_destroy_removes_the_ring(uri):
    producer = ombus.Producer(uri)
    producer.destroy()
    with pytest.raises(ombus.CannotOpen):
        ombus.inspect(uri)


def test_keep_false_removes_the_ring_at_the_end(uri):
    with ombus.Producer(uri, keep=False):
        assert ombus.inspect(uri).name
    with pytest.raises(ombus.CannotOpen):
        ombus.inspect(uri)


def test_a_dropped_producer_lets_go_of_the_ring(uri):
    producer = ombus.Producer(uri)
    del producer
    assert ombus.inspect(uri).producer_pid == 0


def test_init_cannot_be_called_twice(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        with pytest.raises(ombus.InvalidArgument, match="twice"):
            producer.__init__(uri)
        with pytest.raises(ombus.InvalidArgument, match="twice"):
            consumer.__init__(uri)
        producer.publish(b"x")
        assert consumer.poll().payload == b"x"


def test_repr_names_the_stream(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        assert repr(producer) == f"<Producer {uri} last_seq=0>"
        assert repr(consumer) == f"<Consumer {uri} index=0 wal_seq=0>"
    assert repr(producer) == f"<Producer {uri} closed>"
    assert repr(consumer) == f"<Consumer {uri} closed>"


def test_crc_can_be_left_off(uri):
    with ombus.Producer(uri, crc=False):
        assert not ombus.inspect(uri).crc
    with ombus.Producer(uri):
        assert ombus.inspect(uri).crc
