"""Consumer("log://..."): a ring consumer's API over a log, starting points, names and saved positions."""

import datetime as dt
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import ombus
import pytest


@pytest.fixture
def producer(log_uri):
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        yield producer


def test_poll_wait_iterate(producer, log_uri):
    with ombus.Consumer(log_uri, timeout=0) as consumer:
        assert isinstance(consumer, ombus.LogConsumer)
        assert isinstance(consumer, ombus.Consumer)
        assert consumer.poll() is None
        assert consumer.wait(0) is False
        producer.publish_batch([b"a", b"b", b"c"])
        assert consumer.wait() is True
        assert consumer.poll() == ombus.Record(1, 1, b"a")
        assert (consumer.wal_seq, consumer.position) == (1, 2)
        assert [record.payload for record in consumer] == [b"b", b"c"]
        assert repr(consumer) == f"<Consumer {log_uri} position=4>"
        assert consumer.timeout == 0
        consumer.timeout = 0.5
        threading.Timer(0.05, producer.publish, [b"d"]).start()
        assert next(consumer).payload == b"d"
    assert consumer.closed
    with pytest.raises(ombus.Closed):
        consumer.poll()


def test_batches(producer, log_uri):
    producer.publish_batch(np.arange(5000, dtype="<u8"))
    with ombus.Consumer(log_uri) as consumer:
        first = consumer.poll_batch(10)
        assert first.to_numpy("<u8").tolist() == list(range(10))
        rest = []
        while batch := consumer.poll_batch(100_000):
            rest += batch.seqs.tolist()
        assert rest == list(range(11, 5001))
        assert (consumer.wal_seq, consumer.position) == (5000, 5001)
        assert len(consumer.poll_batch()) == len(consumer.poll_batch(0)) == 0


def test_large_records_come_in_batches_of_bounded_size(log_uri):
    with ombus.Producer(log_uri, sync="none") as producer:
        producer.publish_batch([bytes(20 << 20)] * 5)
    with ombus.Consumer(log_uri) as consumer:
        sizes = []
        while batch := consumer.poll_batch():
            sizes.append(len(batch))
        assert sum(sizes) == 5
        assert max(sizes) == 3


@pytest.mark.parametrize(
    ("from_", "first"), [(None, 1), ("first", 1), (1, 1), (7, 7), (np.int64(9), 9), ("end", 11), (11, 11)]
)
def test_where_it_starts(producer, log_uri, from_, first):
    producer.publish_batch([b"x"] * 10)
    with ombus.Consumer(log_uri, from_=from_) as consumer:
        producer.publish(b"y")
        assert consumer.poll().seq == first


def test_from_a_time(producer, log_uri):
    producer.publish_batch([b"x"] * 10)
    time.sleep(0.002)
    now = dt.datetime.now(dt.timezone.utc)
    time.sleep(0.002)
    producer.publish(b"y")
    for from_ in (now, now.isoformat(), np.datetime64(now.replace(tzinfo=None))):
        with ombus.Consumer(log_uri, from_=from_) as consumer:
            assert consumer.poll().seq == 11


def test_a_record_that_is_not_there_yet(producer, log_uri):
    with ombus.Consumer(log_uri, from_=5) as consumer:
        producer.publish_batch([b"x"] * 4)
        assert consumer.poll() is None
        assert not consumer.wait(0)
        producer.publish(b"five")
        assert consumer.poll().payload == b"five"


def test_a_named_consumer_goes_on(producer, log_uri, log_dir):
    producer.publish_batch([b"x"] * 10)
    with ombus.Consumer(log_uri, name="billing", from_=3) as consumer:
        assert consumer.poll().seq == 3
        assert ombus.Log(log_dir).consumers() == []
        consumer.save()
        consumer.poll()
    (saved,) = ombus.Log(log_dir).consumers()
    assert (saved.name, saved.wal_seq, saved.error) == ("billing", 3, None)
    assert time.time_ns() - saved.saved_ns < 60e9
    with ombus.Consumer(log_uri, name="billing", from_="end") as consumer:
        assert consumer.poll().seq == 4
    ombus.forget_consumer(log_dir, "billing")
    with pytest.raises(ombus.LogNotFound):
        ombus.forget_consumer(log_dir, "billing")
    with ombus.Consumer(log_uri, name="billing", from_="end") as consumer:
        assert consumer.poll() is None
        consumer.save()
    assert ombus.Log(log_dir).consumers()[0].wal_seq == 10


def test_names(producer, log_uri):
    with pytest.raises(ombus.LogConsumerName):
        ombus.Consumer(log_uri, name="../x")
    with ombus.Consumer(log_uri) as consumer, pytest.raises(ombus.InvalidArgument, match="has no name"):
        consumer.save()


def test_a_damaged_position_is_an_error(producer, log_uri, log_dir):
    producer.publish(b"x")
    with ombus.Consumer(log_uri, name="a") as consumer:
        consumer.poll()
        consumer.save()
    cursor = log_dir / "consumers/a.cursor"
    cursor.write_bytes(cursor.read_bytes()[:-1] + b"?")
    with pytest.raises(ombus.ChecksumMismatch):
        ombus.Consumer(log_uri, name="a")
    (info,) = ombus.Log(log_dir).consumers()
    assert isinstance(info.error, ombus.ChecksumMismatch)


def test_cursor_files(producer, log_uri, tmp_path):
    producer.publish_batch([b"x"] * 5)
    with ombus.Consumer(log_uri) as consumer:
        consumer.poll_batch(3)
        consumer.save_cursor(tmp_path / "cursor")
    assert ombus.Consumer.load_cursor(tmp_path / "cursor") == 3


def test_gaps_are_counted(producer, log_uri):
    for seq in (1, 2, 5, 6, 9):
        producer.publish(b"x", seq=seq)
    with ombus.Consumer(log_uri) as consumer:
        assert consumer.poll_batch().seqs.tolist() == [1, 2, 5, 6, 9]
        assert consumer.gaps == 2
    with ombus.Consumer(log_uri) as consumer:
        assert [consumer.poll().seq for _ in range(5)] == [1, 2, 5, 6, 9]
        assert consumer.gaps == 2


def test_gaps_are_raised_when_asked(producer, log_uri):
    for seq in (3, 4, 7, 8):
        producer.publish(b"%d" % seq, seq=seq)
    with ombus.Consumer(log_uri, on_gap="raise") as consumer:
        assert consumer.poll_batch().seqs.tolist() == [3, 4]
        with pytest.raises(ombus.GapDetected, match="expected wal_seq 5, got 7") as caught:
            consumer.poll_batch()
        assert caught.value.record == ombus.Record(7, 1, b"7")
        assert consumer.poll_batch().seqs.tolist() == [8]
    with ombus.Consumer(log_uri, on_gap="raise", timeout=0) as consumer:
        assert [next(consumer).seq, next(consumer).seq] == [3, 4]
        with pytest.raises(ombus.GapDetected):
            next(consumer)
        assert [record.seq for record in consumer] == [8]
    with pytest.raises(ombus.InvalidArgument, match="on_gap"):
        ombus.Consumer(log_uri, on_gap="shrug")


def test_what_retention_has_removed_is_said_once(producer, log_uri, log_dir):
    producer.publish_batch(np.zeros(10_000, "<u8"))
    with ombus.Consumer(log_uri, name="late") as consumer:
        consumer.poll()
        consumer.save()
        behind = ombus.Consumer(log_uri)
        behind.poll()
        assert ombus.prune_log(log_dir, max_bytes=1, for_consumers=False) > 0
    first = ombus.Log(log_dir).first_seq
    with ombus.Consumer(log_uri, name="late") as consumer:
        assert consumer.wait(0)
        with pytest.raises(ombus.LogPruned) as caught:
            consumer.poll_batch()
        assert "wal_seq 2 to" in str(caught.value)
        assert consumer.poll().seq == first
    while True:  # it keeps what it has mapped, and is told when that ends
        try:
            record = behind.poll()
        except ombus.LogPruned:
            break
        assert record.seq < first
    assert behind.poll().seq == first
    behind.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_reading_only_needs_the_right_to_read(child):
    code = """
import os, sys, ombus
os.setuid(65534)
with ombus.Consumer(sys.argv[1], timeout=60) as consumer:
    for record in consumer:
        print(record.payload.decode(), flush=True)
"""
    with tempfile.TemporaryDirectory() as folder, ombus.Producer(f"log://{folder}/log") as producer:
        producer.publish(b"x")
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        reader = child(code, f"log://{folder}/log")
        assert reader.line() == "x"
        producer.publish(b"y")
        assert reader.line() == "y"


def test_bad_arguments(producer, log_uri):
    for options in ({"from_": -1}, {"from_": "soon"}, {"timeout": -1}):
        with pytest.raises(ombus.InvalidArgument):
            ombus.Consumer(log_uri, **options)
    with pytest.raises(TypeError):
        ombus.Consumer(log_uri, from_=1.5)
    with pytest.raises(TypeError):
        ombus.Consumer(log_uri, index=1)
