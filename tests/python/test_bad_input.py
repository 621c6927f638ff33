"""Everything that can be wrong with a ring or a call: each has its code, and a message that helps."""

import os

import ombus
import pytest

RING_HEADER = 4096


def check(caught, code, *words):
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def test_wrong_name(uri):
    with pytest.raises(ombus.CannotOpen) as caught:
        ombus.Consumer(uri)
    check(caught, -803, uri.removeprefix("shm://"), "No such file", "check that its owner has created it")


@pytest.mark.parametrize("kind", [ombus.Producer, ombus.Consumer, ombus.inspect, ombus.unlink])
def test_a_name_that_is_too_long(kind):
    with pytest.raises(ombus.InvalidArgument) as caught:
        kind("shm://" + "x" * 100)
    check(caught, -800)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("kind", ["Producer", "Consumer", "inspect", "unlink"])
def test_no_permission(uri, child, kind):
    with ombus.Producer(uri) as producer:
        producer.publish(b"secret")
        code = """
import os, sys, ombus
os.setuid(65534)
try:
    getattr(ombus, sys.argv[1])(sys.argv[2])
except ombus.Error as error:
    print(error.code, error)
"""
        line = child(code, kind, uri).line()
        assert line.startswith("-803 ")
        assert "Permission denied" in line
        assert "your rights" in line
        assert ombus.inspect(uri).last_wal_seq == 1


@pytest.mark.parametrize("kind", [ombus.Producer, ombus.Consumer, ombus.inspect, ombus.unlink])
def test_not_a_ring(uri, shm_file, kind):
    shm_file.write_bytes(b"something else " * 1000)
    with pytest.raises(ombus.NotARing) as caught:
        kind(uri)
    check(caught, -807, "not an ombus ring", shm_file.name)
    assert shm_file.read_bytes().startswith(b"something else")


@pytest.mark.parametrize("kind", [ombus.Producer, ombus.Consumer, ombus.inspect])
def test_other_version(uri, shm_file, kind):
    ombus.Producer(uri).close()
    with shm_file.open("r+b") as file:
        file.seek(4)
        file.write((2).to_bytes(4, "little"))
    with pytest.raises(ombus.VersionMismatch) as caught:
        kind(uri)
    check(caught, -808, "format version 2, this library reads 1", "same ombus release")


def test_contradicting_header(uri, shm_file):
    ombus.Producer(uri).close()
    with shm_file.open("r+b") as file:
        file.seek(12)
        file.write((2**20).to_bytes(4, "little"))
    with pytest.raises(ombus.Corrupt) as caught:
        ombus.Consumer(uri)
    check(caught, -827, "do not fit", "remove the ring")


def test_truncated_object(uri, shm_file):
    shm_file.write_bytes(b"OM")
    with pytest.raises(ombus.CannotMap) as caught:
        ombus.Consumer(uri)
    check(caught, -802, shm_file.name)


@pytest.mark.parametrize("capacity", [3, 1000, 4097])
def test_capacity_not_a_power_of_two(uri, capacity):
    with pytest.raises(ombus.CapacityNotPowerOfTwo) as caught:
        ombus.Producer(uri, capacity=capacity)
    check(caught, -804, f"capacity {capacity} is not a power of two", "use 1024, 4096")


@pytest.mark.parametrize("slot_size", [1, 24])
def test_slot_too_small(uri, slot_size):
    with pytest.raises(ombus.InvalidArgument) as caught:
        ombus.Producer(uri, slot_size=slot_size)
    check(caught, -800, f"slot_size {slot_size} leaves no room for a payload: use at least 25")


@pytest.mark.parametrize("name", ["capacity", "slot_size", "max_consumers"])
@pytest.mark.parametrize("bad", [0, -1, 2**32])
def test_sizes_out_of_range(uri, name, bad):
    with pytest.raises(ombus.InvalidArgument, match=f"{name} is {bad}, allowed are 1 to"):
        ombus.Producer(uri, **{name: bad})


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_staleness_out_of_range(uri, bad):
    with pytest.raises(ombus.InvalidArgument, match="staleness is"):
        ombus.Producer(uri, staleness=bad)


def test_on_gap_is_one_of_two(uri):
    with ombus.Producer(uri), pytest.raises(ombus.InvalidArgument, match="'raise' and 'ignore'"):
        ombus.Consumer(uri, on_gap="skip")


@pytest.mark.parametrize("size", [233, 65_535, 65_536, 1_000_000])
def test_payload_too_large(uri, size):
    with ombus.Producer(uri, slot_size=256) as producer:
        producer.publish(bytes(232))
        for payload in (bytes(size), bytearray(size)):
            with pytest.raises(ombus.RecordTooLarge) as caught:
                producer.publish(payload)
            check(caught, -806, f"payload of {size} bytes", "create the ring with slot_size")
        assert producer.last_seq == 1


def test_no_such_consumer_slot(uri):
    with ombus.Producer(uri, max_consumers=2):
        with pytest.raises(ombus.NoSuchConsumer) as caught:
            ombus.Consumer(uri, index=2)
        check(caught, -805, "has 2 consumer slots, asked for index 2")
        for bad in (-1, 2**32):
            with pytest.raises(ombus.InvalidArgument, match="index is"):
                ombus.Consumer(uri, index=bad)


def test_consumer_slot_in_use(uri):
    with ombus.Producer(uri, max_consumers=1), ombus.Consumer(uri):
        for index in (0, None):
            with pytest.raises(ombus.RingInUse) as caught:
                ombus.Consumer(uri, index=index)
            check(caught, -826)


def test_closed_producer(uri):
    producer = ombus.Producer(uri)
    producer.close()
    for call in (
        lambda: producer.publish(b"x"),
        lambda: producer.try_publish(b"x"),
        lambda: producer.publish_batch([b"x"]),
        producer.stats,
    ):
        with pytest.raises(ombus.Closed) as caught:
            call()
        check(caught, -800, "this handle is closed: open a new one", "producer")


def test_closed_consumer(uri, tmp_path):
    with ombus.Producer(uri):
        consumer = ombus.Consumer(uri)
        consumer.close()
    for call in (
        consumer.poll,
        consumer.poll_batch,
        consumer.wait,
        lambda: next(consumer),
        lambda: consumer.save_cursor(tmp_path / "cursor"),
        lambda: consumer.wal_seq,
        lambda: consumer.missed,
        lambda: consumer.index,
    ):
        with pytest.raises(ombus.Closed) as caught:
            call()
        check(caught, -800, "this handle is closed: open a new one", "consumer")


@pytest.mark.parametrize("producer", [ombus.RingProducer, ombus.LogProducer])
@pytest.mark.parametrize("consumer", [ombus.RingConsumer, ombus.LogConsumer])
def test_a_handle_that_was_never_opened(producer, consumer):
    with pytest.raises(ombus.Closed):
        producer.__new__(producer).publish(b"x")
    with pytest.raises(ombus.Closed):
        producer.__new__(producer).publish_batch([b"x"])
    with pytest.raises(ombus.Closed):
        consumer.__new__(consumer).poll()
    with pytest.raises(ombus.Closed):
        consumer.__new__(consumer)._poll_columns(1)


def test_what_happens_while_arguments_are_read_cannot_hurt(uri):
    """An argument may run any code, even such that closes the handle it is an argument to."""
    producer = ombus.Producer(uri)

    class Index:
        def __index__(self):
            producer.close()
            return 1

    with pytest.raises(ombus.Closed):
        producer.publish(b"x", Index())
    producer = ombus.Producer(uri)
    with pytest.raises(ombus.Closed):
        producer.publish_batch([b"x"], seq=Index())
    with ombus.Producer(uri):
        consumer = ombus.Consumer(uri)

        class Max:
            def __index__(self):
                consumer.close()
                return 1

        with pytest.raises(ombus.Closed):
            consumer.poll_batch(Max())
