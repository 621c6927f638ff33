"""ZeroCopyBatch: the ring's own memory, which is not given back while anything looks at it."""

import numpy as np
import ombus
import pytest

TRADE = np.dtype([("price", "<i8"), ("volume", "<u4")])


@pytest.fixture
def pair(uri):
    with ombus.Producer(uri, capacity=8, slot_size=64) as producer, ombus.Consumer(uri, zero_copy=True) as consumer:
        yield producer, consumer


def test_columns_and_payloads(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"", b"ccc"], type=4, seq=10)
    with consumer.poll_batch() as batch:
        assert isinstance(batch, ombus.ZeroCopyBatch)
        assert batch.seqs.tolist() == [10, 11, 12]
        assert batch.types.tolist() == [4, 4, 4]
        assert batch.sizes.tolist() == [1, 0, 3]
        assert len(batch.offsets) == 3
        assert [bytes(payload) for payload in batch.payloads] == [b"a", b"", b"ccc"]
        assert list(batch) == [ombus.Record(10, 4, b"a"), ombus.Record(11, 4, b""), ombus.Record(12, 4, b"ccc")]
        assert batch.payloads[0].readonly
        assert consumer.wal_seq == 0
    assert batch.released
    assert consumer.wal_seq == 12


def test_the_producer_cannot_reuse_what_is_held(pair):
    producer, consumer = pair
    producer.publish_batch([b"x"] * 8)
    batch = consumer.poll_batch()
    assert producer.try_publish(b"y") is None
    batch.release()
    assert producer.try_publish(b"y") == 9


def test_release_is_refused_while_a_view_is_alive(pair):
    producer, consumer = pair
    producer.publish_batch([b"abc", b"def"])
    batch = consumer.poll_batch()
    view = batch.payloads[0]
    part = view[1:]
    for refused in (batch.release, consumer.poll, consumer.poll_batch, consumer.wait, consumer.close):
        with pytest.raises(BufferError, match="alive"):
            refused()
    with pytest.raises(BufferError):
        next(consumer)
    assert bytes(view) == b"abc"
    view.release()
    with pytest.raises(BufferError):
        batch.release()
    del part
    batch.release()
    batch.release()


def test_an_array_holds_the_batch_too(pair):
    producer, consumer = pair
    trades = np.array([(100, 5), (101, 6), (102, 7)], TRADE)
    producer.publish_batch(trades)
    batch = consumer.poll_batch()
    array = batch.to_numpy(TRADE)
    assert (array == trades).all()
    assert array.strides == (64,)
    assert not array.flags.writeable
    prices = array["price"]
    del array
    with pytest.raises(BufferError):
        batch.release()
    del batch
    with pytest.raises(BufferError):
        consumer.poll()
    assert prices.tolist() == [100, 101, 102]
    del prices
    assert consumer.poll() is None


def test_a_released_batch_shows_nothing(pair):
    producer, consumer = pair
    producer.publish(b"abc")
    batch = consumer.poll_batch()
    batch.release()
    with pytest.raises(BufferError, match="given back"):
        batch.payloads[0]
    with pytest.raises(BufferError, match="given back"):
        batch.to_numpy("S3")
    assert batch.seqs.tolist() == [1]


def test_the_next_poll_gives_the_batch_back(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"b", b"c"])
    first = consumer.poll_batch(1)
    second = consumer.poll_batch(1)
    assert first.released
    assert bytes(second.payloads[0]) == b"b"
    assert consumer.poll() == ombus.Record(3, 1, b"c")
    assert second.released


def test_a_dropped_batch_is_given_back(pair):
    producer, consumer = pair
    producer.publish_batch([b"x"] * 8)
    assert len(consumer.poll_batch()) == 8
    assert producer.try_publish(b"y") == 9


def test_a_batch_over_the_ring_s_end(pair):
    producer, consumer = pair
    producer.publish_batch(np.arange(5, dtype="<u8"))
    consumer.poll_batch().release()
    producer.publish_batch(np.arange(8, dtype="<u8"))
    got = []
    while batch := consumer.poll_batch():
        array = batch.to_numpy("<u8")
        got += array.tolist()
        assert [int.from_bytes(payload, "little") for payload in batch.payloads] == array.tolist()
        del array
        batch.release()
    assert got == list(range(8))


def test_an_empty_batch_needs_no_release(pair):
    _, consumer = pair
    with consumer.poll_batch() as batch:
        assert len(batch) == 0
        assert batch.to_numpy(TRADE).shape == (0,)
        assert list(batch) == []
    assert not batch.released
    assert len(consumer.poll_batch(0)) == 0


def test_a_gap_is_raised_and_its_record_comes_with_the_next_batch(pair):
    producer, consumer = pair
    for seq in (1, 4, 5):
        producer.publish(b"x", seq=seq)
    consumer.poll_batch().release()
    with pytest.raises(ombus.GapDetected, match="expected wal_seq 2, got 4") as caught:
        consumer.poll_batch()
    assert caught.value.record is None
    assert consumer.poll_batch().seqs.tolist() == [4, 5]


def test_ignored_gaps(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri, zero_copy=True, on_gap="ignore") as consumer:
        for seq in (1, 4, 5):
            producer.publish(b"x", seq=seq)
        assert consumer.poll_batch().seqs.tolist() == [1]
        assert consumer.poll_batch().seqs.tolist() == [4, 5]
        assert consumer.gaps == 1


@pytest.mark.parametrize("drop", [False, True])
def test_having_been_passed_over_is_raised(uri, drop):
    shape = {"capacity": 4, "staleness": 0.02}
    with ombus.Producer(uri, **shape) as producer, ombus.Consumer(uri, zero_copy=True) as consumer:
        producer.publish_batch([b"x"] * 4)
        batch = consumer.poll_batch()
        producer.publish_batch([b"y"] * 4)
        with pytest.raises(ombus.ConsumerStale, match="missed 8 records"):
            if drop:
                del batch
                consumer.poll()
            else:
                batch.release()
        producer.publish(b"z")
        assert consumer.poll() == ombus.Record(9, 1, b"z")


def test_closing_with_a_batch_but_no_view(uri):
    with ombus.Producer(uri) as producer:
        consumer = ombus.Consumer(uri, zero_copy=True)
        producer.publish(b"x")
        batch = consumer.poll_batch()
        consumer.close()
        assert batch.released
        batch.release()
        assert ombus.inspect(uri).consumers[0].state is ombus.ConsumerState.FREE


def test_a_view_keeps_the_consumer_alive(uri):
    with ombus.Producer(uri) as producer:
        consumer = ombus.Consumer(uri, zero_copy=True)
        producer.publish(b"abc")
        view = consumer.poll_batch().payloads[0]
        del consumer
        assert bytes(view) == b"abc"
        assert ombus.inspect(uri).consumers[0].state is ombus.ConsumerState.CLAIMED
        del view
        assert ombus.inspect(uri).consumers[0].state is ombus.ConsumerState.FREE
