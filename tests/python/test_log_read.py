"""ombus.Log: slices by wal_seq and time, iteration, following, arrays."""

import datetime as dt
import threading
import time

import numpy as np
import ombus
import pandas
import pytest

TRADE = np.dtype([("price", "<i8"), ("volume", "<u4")])


@pytest.fixture
def log(log_uri, log_dir):
    """100 records: wal_seq 1 to 50, then 61 to 110."""
    with ombus.Producer(log_uri) as producer:
        producer.publish_batch(np.arange(1, 51, dtype="<u8"))
        producer.publish_batch(np.arange(61, 111, dtype="<u8"), seq=61, type=3)
    with ombus.Log(log_dir) as log:
        yield log


def seqs(records):
    return [record.seq for record in records]


def test_what_a_log_knows(log, log_dir, log_uri):
    assert len(log) == 100
    assert (log.first_seq, log.last_seq, log.durable_seq, log.epoch) == (1, 110, 110, 1)
    assert log.path == str(log_dir)
    assert len(bytes.fromhex(log.id)) == 16
    info = log.info()
    assert (info.id, info.records, info.first_seq, info.last_seq) == (log.id, 100, 1, 110)
    assert info.first_time_ns <= info.last_time_ns <= time.time_ns()
    assert not info.writer_alive
    assert ombus.Log(log_uri).id == log.id
    assert repr(log[5:]) == f"<LogRange {log_dir} [5:]>"
    assert log.counts() == (100, 100 * 40)


def test_slices(log):
    assert seqs(log) == [*range(1, 51), *range(61, 111)]
    assert seqs(log[10:20]) == list(range(10, 20))
    assert seqs(log[45:65]) == [45, 46, 47, 48, 49, 50, 61, 62, 63, 64]
    assert seqs(log[:5]) == [1, 2, 3, 4]
    assert seqs(log[105:]) == [105, 106, 107, 108, 109, 110]
    assert seqs(log[-3:]) == [108, 109, 110]
    assert seqs(log[:-105]) == [1, 2, 3, 4, 5]
    assert seqs(log[20:10]) == seqs(log[200:]) == seqs(log[51:61]) == []
    assert len(log[45:65]) == 10
    assert len(log[20:10]) == 0
    assert not log[51:61]
    assert seqs(log[10:40][20:]) == list(range(20, 40))
    assert seqs(log[10:40][:15]) == list(range(10, 15))
    with pytest.raises(ombus.InvalidArgument, match="no steps"):
        log[::2]


def test_one_record(log):
    assert log[7] == ombus.Record(7, 1, (7).to_bytes(8, "little"))
    assert log[-1].seq == 110
    assert log[np.uint64(61)].type == 3
    for seq in (0, 55, 111, 10**15):
        with pytest.raises(ombus.NoSuchRecord) as caught:
            log[seq]
        assert isinstance(caught.value, IndexError)
    with pytest.raises(ombus.NoSuchRecord):
        log[10:20][20]


def test_by_time(log_uri, log_dir):
    marks = []
    with ombus.Producer(log_uri) as producer:
        for turn in range(4):
            marks.append(time.time_ns())
            producer.publish_batch([b"%d" % turn] * 10)
            time.sleep(0.002)
    log = ombus.Log(log_dir)
    assert seqs(log.between(marks[1], marks[3])) == list(range(11, 31))
    assert seqs(log.between(marks[2])) == list(range(21, 41))
    assert seqs(log.between(None, marks[1])) == list(range(1, 11))
    assert seqs(log.between(time.time_ns())) == []
    assert seqs(log.between(0)) == list(range(1, 41))
    assert seqs(log[15:].between(marks[1], marks[2])) == list(range(15, 21))
    record = log[11]
    exact = np.datetime64(record.timestamp_ns, "ns")
    assert log.between(exact)[11] == record
    assert next(iter(log.between(pandas.Timestamp(record.timestamp_ns, tz="UTC")))) == record
    as_datetime = dt.datetime.fromtimestamp(marks[1] // 1000 / 1e6, dt.timezone.utc)
    assert next(iter(log.between(as_datetime))) == record
    assert next(iter(log.between(as_datetime.isoformat()))) == record
    assert next(iter(log.between(as_datetime.astimezone(None).replace(tzinfo=None)))) == record
    with pytest.raises(ombus.InvalidArgument, match="is no time"):
        log.between("yesterday")
    with pytest.raises(TypeError, match="not list"):
        log.between([])


def test_records_have_times(log):
    times = [record.timestamp_ns for record in log]
    assert times == sorted(times)
    assert time.time_ns() - 60e9 < times[0] <= time.time_ns()
    (batch,) = log[:5].batches()
    assert batch.timestamps_ns.tolist() == times[:4]
    assert batch.timestamps[0] == np.datetime64(times[0], "ns")
    assert batch[0].timestamp_ns == times[0]
    assert [record.timestamp_ns for record in batch] == times[:4]
    assert f"timestamp_ns={times[0]})" in repr(log[1])


def test_batches(log):
    batches = list(log.batches(30))
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert np.concatenate([batch.seqs for batch in batches]).tolist() == seqs(log)
    assert batches[0].to_numpy("<u8").tolist() == list(range(1, 31))
    assert batches[2].types.tolist() == [3] * 30


def test_to_numpy(log, log_uri):
    assert log.to_numpy("<u8").tolist() == seqs(log)
    assert log[10:12].to_numpy("<u4,<u4").dtype == np.dtype("<u4,<u4")
    assert log[200:].to_numpy(TRADE).shape == (0,)
    with ombus.Producer(log_uri) as producer:
        producer.publish_batch(np.array([(5, 6), (7, 8)], TRADE))
    assert log[111:].to_numpy(TRADE)["price"].tolist() == [5, 7]
    with pytest.raises(ombus.InvalidArgument, match="payload of wal_seq 111 has 12 bytes"):
        log.to_numpy("<u8")
    with pytest.raises(ombus.InvalidArgument, match="no fixed size"):
        log.to_numpy(object)


def test_many_records_over_many_segments(log_uri, log_dir):
    rows = np.arange(200_000, dtype="<u8")
    with ombus.Producer(log_uri, segment_size=64 << 10, sync="none") as producer:
        producer.publish_batch(rows)
    log = ombus.Log(log_dir)
    assert (log.to_numpy("<u8") == rows).all()
    assert (log[50_001:150_001].to_numpy("<u8") == rows[50_000:150_000]).all()
    assert sum(len(batch) for batch in log.batches()) == 200_000
    assert sum(1 for _ in log[100_000:]) == 100_001


def test_an_empty_log(log_uri, log_dir):
    with ombus.Producer(log_uri):
        log = ombus.Log(log_dir)
        assert (len(log), log.first_seq, log.last_seq) == (0, 0, 0)
        assert list(log) == list(log[5:]) == list(log.between(0)) == list(log.batches()) == []
        assert log.to_numpy("<u8").shape == (0,)
        assert log.info().records == 0
        with pytest.raises(ombus.NoSuchRecord):
            log[-1]


def test_no_log(tmp_path):
    for path in (tmp_path, tmp_path / "nothing", f"log://{tmp_path}"):
        with pytest.raises(ombus.LogNotFound) as caught:
            ombus.Log(path)
        assert str(tmp_path) in str(caught.value)
    with pytest.raises(ombus.BadAddress, match="names no log"):
        ombus.Log("shm://engine-0")


def test_a_range_ends_where_the_log_ended(log, log_uri):
    iterator = iter(log)
    next(iterator)
    with ombus.Producer(log_uri) as producer:
        producer.publish(b"later")
    assert seqs(iterator)[-1] == 110
    assert log[-1].payload == b"later"


def test_follow(log_uri, log_dir):
    with ombus.Producer(log_uri) as producer:
        producer.publish_batch([b"old"] * 3)
        log = ombus.Log(log_dir)
        new = log.follow(60, from_="end")
        all_ = log.follow(60)
        producer.publish(b"new")
        assert next(new) == ombus.Record(4, 1, b"new")
        assert [next(all_).seq for _ in range(4)] == [1, 2, 3, 4]
        assert seqs(log[2:4].follow()) == [2, 3]
        assert seqs(log.follow(0.01, from_=3)) == [3, 4]
        assert seqs(log.follow(0.01, from_=dt.datetime.now(dt.timezone.utc))) == []
        writer = threading.Timer(0.05, producer.publish, [b"late"])
        writer.start()
        assert next(new).payload == b"late"
        writer.join()


def test_durable_only(log_uri, log_dir):
    with ombus.Producer(log_uri, sync="none") as producer:
        producer.publish_batch([b"x"] * 5)
        producer.sync()
        producer.publish_batch([b"y"] * 5)
        assert len(list(ombus.Log(log_dir))) == 10
        safe = ombus.Log(log_dir, durable_only=True)
        assert (safe.last_seq, len(list(safe))) == (5, 5)
        producer.sync()
        assert len(list(safe)) == 10


def test_a_closed_log(log):
    part = log[:5]
    log.close()
    with pytest.raises(ombus.Closed):
        log.last_seq  # noqa: B018
    assert len(part) == 4
