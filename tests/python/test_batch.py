"""RecordBatch: columns that belong to the batch alone."""

import numpy as np
import ombus
import pytest

TRADE = np.dtype([("price", "<i8"), ("volume", "<u4")])


@pytest.fixture
def pair(uri):
    with ombus.Producer(uri, capacity=16) as producer, ombus.Consumer(uri) as consumer:
        yield producer, consumer


def test_columns(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"", b"ccc"], type=4, seq=10)
    batch = consumer.poll_batch()
    assert len(batch) == 3
    assert (batch.seqs.dtype, batch.seqs.tolist()) == (np.uint64, [10, 11, 12])
    assert (batch.types.dtype, batch.types.tolist()) == (np.uint8, [4, 4, 4])
    assert (batch.offsets.dtype, batch.offsets.tolist()) == (np.uint32, [0, 1, 1, 4])
    assert batch.sizes.tolist() == [1, 0, 3]
    assert repr(batch) == "<RecordBatch 3 records, wal_seq 10 to 12>"


def test_payloads_are_a_sequence_of_views(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"bb", b"ccc"])
    payloads = consumer.poll_batch().payloads
    assert len(payloads) == 3
    assert all(isinstance(payload, memoryview) for payload in payloads)
    assert [bytes(payload) for payload in payloads] == [b"a", b"bb", b"ccc"]
    assert [bytes(payload) for payload in payloads[1:]] == [b"bb", b"ccc"]
    assert bytes(payloads[-1]) == b"ccc"
    assert b"bb" in payloads
    for index in (3, -4):
        with pytest.raises(IndexError):
            payloads[index]


def test_iteration_and_items_give_records(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"bb"], type=9)
    batch = consumer.poll_batch()
    assert list(batch) == [ombus.Record(1, 9, b"a"), ombus.Record(2, 9, b"bb")]
    assert batch[1] == batch[-1] == ombus.Record(2, 9, b"bb")
    with pytest.raises(IndexError):
        batch[2]


def test_views_outlive_the_slot_the_batch_and_the_consumer(uri):
    with ombus.Producer(uri, capacity=4) as producer:
        with ombus.Consumer(uri) as consumer:
            producer.publish(b"kept")
            batch = consumer.poll_batch()
            view, array = batch.payloads[0], batch.to_numpy("S4")
            del batch
            for _ in range(20):  # the slot is used again and again
                producer.publish(b"lost")
                consumer.poll()
        del consumer
        assert bytes(view) == b"kept"
        assert array.tolist() == [b"kept"]


def test_to_numpy_is_a_view_of_the_buffer(pair):
    producer, consumer = pair
    trades = np.array([(100, 5), (101, 6), (-3, 7)], TRADE)
    producer.publish_batch(trades)
    batch = consumer.poll_batch()
    array = batch.to_numpy(TRADE)
    assert (array == trades).all()
    assert np.shares_memory(array, np.frombuffer(batch.payloads[0], "u1"))
    assert np.shares_memory(array, batch.to_numpy([("price", "<i8"), ("volume", "<u4")]))


def test_to_numpy_needs_equal_sizes(pair):
    producer, consumer = pair
    producer.publish_batch([b"12345678", b"1234"])
    batch = consumer.poll_batch()
    with pytest.raises(ombus.InvalidArgument, match="payloads have 4 to 8 bytes"):
        batch.to_numpy("<u8")
    with pytest.raises(ombus.InvalidArgument, match="no fixed size"):
        batch.to_numpy(object)
    with pytest.raises(ombus.InvalidArgument, match="no fixed size"):
        batch.to_numpy("V0")


def test_sizes_that_only_add_up_are_not_equal(pair):
    producer, consumer = pair
    producer.publish_batch([b"1234", b"123456781234"])
    with pytest.raises(ombus.InvalidArgument):
        consumer.poll_batch().to_numpy("<u8")


def test_an_empty_batch(pair):
    _, consumer = pair
    batch = consumer.poll_batch()
    assert len(batch) == 0
    assert list(batch) == list(batch.payloads) == []
    assert batch.seqs.tolist() == batch.sizes.tolist() == []
    assert batch.offsets.tolist() == [0]
    assert batch.to_numpy(TRADE).shape == (0,)
    assert repr(batch) == "<RecordBatch empty>"


def test_max_limits_a_batch(pair):
    producer, consumer = pair
    producer.publish_batch([b"x"] * 10)
    assert len(consumer.poll_batch(0)) == 0
    assert len(consumer.poll_batch(3)) == 3
    assert len(consumer.poll_batch(max=2**40)) == 7
    for bad in (-1, 2**64):
        with pytest.raises(ombus.InvalidArgument, match="max is"):
            consumer.poll_batch(bad)


def test_large_records_and_rings(uri):
    """More than a batch may hold at once: what does not fit comes with the next one."""
    with ombus.Producer(uri, capacity=2048, slot_size=65_560, crc=False) as producer, ombus.Consumer(uri) as consumer:
        payload = np.random.default_rng(1).bytes(65_535)
        for _ in range(1500):
            producer.publish(payload)
        got = []
        while batch := consumer.poll_batch(4096):
            assert batch.payloads[0] == batch.payloads[-1] == payload
            got.append(len(batch))
        assert sum(got) == 1500
        assert len(got) == 2
