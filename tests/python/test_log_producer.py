"""Producer("log://..."): appending, numbering, durability, retention, and what is refused."""

import datetime as dt
import time

import numpy as np
import ombus
import pytest


def test_publish_and_read_back(log_uri, log_dir):
    with ombus.Producer(log_uri) as producer:
        assert isinstance(producer, ombus.LogProducer)
        assert isinstance(producer, ombus.Producer)
        assert (producer.last_seq, producer.durable_seq, producer.closed) == (0, 0, False)
        assert producer.publish(b"hello") == 1
        assert producer.publish(bytearray(b"array"), type=9) == 2
        assert producer.publish(memoryview(b"view"), seq=10) == 10
        assert producer.try_publish(b"try") == 11
        assert repr(producer) == f"<Producer {log_uri} last_seq=11>"
        assert list(ombus.Log(log_dir)) == [
            ombus.Record(1, 1, b"hello"),
            ombus.Record(2, 9, b"array"),
            ombus.Record(10, 1, b"view"),
            ombus.Record(11, 1, b"try"),
        ]
    assert producer.closed
    assert repr(producer) == f"<Producer {log_uri} closed>"
    producer.close()


def test_a_log_is_continued(log_uri, log_dir):
    for turn in range(3):
        with ombus.Producer(log_uri) as producer:
            assert producer.repaired is None
            assert producer.publish(b"%d" % turn) == turn + 1
    log = ombus.Log(log_dir)
    assert [record.payload for record in log] == [b"0", b"1", b"2"]
    assert log.epoch == 3


@pytest.mark.parametrize("sync", ["linger", "none", "each"])
def test_durability(log_uri, log_dir, sync):
    with ombus.Producer(log_uri, sync=sync, linger_ms=60_000, linger_records=1_000_000) as producer:
        assert producer.publish(b"x") == 1
        assert producer.durable_seq == (1 if sync == "each" else 0)
        producer.wait_durable(1)
        assert producer.durable_seq == 1
        producer.publish_batch([b"y"] * 10)
        producer.sync()
        assert producer.durable_seq == 11
        assert ombus.Log(log_dir).durable_seq == 11
        producer.publish(b"z")
        producer.wait_durable(timeout=60)
        assert producer.stats().durable_seq == 12
        assert producer.stats().syncs >= 1


def test_linger_syncs_by_itself(log_uri):
    with ombus.Producer(log_uri, linger_records=5, linger_ms=1) as producer:
        producer.publish_batch([b"x"] * 20)
        while producer.durable_seq < 20:
            time.sleep(0.001)


def test_batches_of_every_kind(log_uri, log_dir):
    rows = np.array([(1, 2.5), (3, 4.5)], [("a", "<i8"), ("b", "<f8")])
    with ombus.Producer(log_uri) as producer:
        assert producer.publish_batch(rows, type=7) == 2
        assert producer.publish_batch([b"a", bytearray(b"bc"), b""], seq=10) == 12
        assert producer.publish_batch(b"abcdef", itemsize=2) == 15
        assert producer.publish_batch(np.arange(10, dtype="<u4")[::2]) == 20
        assert producer.publish_batch([]) == 20
        assert producer.publish_batch(np.empty(0, "<u4")) == 20
        stats = producer.stats()
    log = ombus.Log(log_dir)
    assert (log[:3].to_numpy(rows.dtype) == rows).all()
    assert [record.payload for record in log[10:16]] == [b"a", b"bc", b"", b"ab", b"cd", b"ef"]
    assert log[16:].to_numpy("<u4").tolist() == [0, 2, 4, 6, 8]
    assert log[1].type == 7
    assert (stats.records_published, stats.last_seq, stats.head, stats.lag) == (13, 20, 0, 0)


def test_rotation(log_uri, log_dir):
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch(np.arange(10_000, dtype="<u8"))
        assert producer.stats().rotations > 10
    log = ombus.Log(log_dir)
    assert len(log.segments()) == log.info().segments > 10
    assert (log.to_numpy("<u8") == np.arange(10_000)).all()
    assert sum(segment.records for segment in log.segments()) == 10_000


def test_a_payload_of_64_mib(log_uri, log_dir):
    payload = bytes(range(256)) * (64 << 12)
    with ombus.Producer(log_uri, sync="none") as producer:
        producer.publish(payload)
        with pytest.raises(ombus.LogRecordTooLarge) as caught:
            producer.publish(payload + b"x")
        assert caught.value.code == -846
        with pytest.raises(ombus.RecordTooLarge):
            producer.publish_batch([b"x", payload + b"x"])
        assert producer.last_seq == 1
    (record,) = ombus.Log(log_dir)
    assert record.payload == payload


def test_numbers_only_rise(log_uri):
    with ombus.Producer(log_uri) as producer:
        producer.publish(b"x", seq=5)
        for seq in (0, 1, 5):
            with pytest.raises(ombus.LogSequenceOrder):
                producer.publish(b"x", seq=seq)
            with pytest.raises(ombus.LogSequenceOrder):
                producer.publish_batch([b"x"], seq=seq)
        last = 2**63 - 2
        with pytest.raises(ombus.LogSequenceLimit):
            producer.publish(b"x", seq=last + 1)
        assert producer.publish(b"x", seq=last - 1) == last - 1
        with pytest.raises(ombus.LogSequenceLimit):
            producer.publish_batch([b"x", b"y"])
        assert producer.publish(b"x") == last
        with pytest.raises(ombus.LogSequenceLimit):
            producer.publish(b"x")


@pytest.mark.parametrize("type_", [0xFD, 0xFE, 0xFF])
def test_reserved_types(log_uri, type_):
    with ombus.Producer(log_uri) as producer:
        with pytest.raises(ombus.LogReservedType):
            producer.publish(b"x", type_)
        with pytest.raises(ombus.LogReservedType):
            producer.publish_batch([b"x"], type_)
        assert producer.publish(b"x", 0xFC) == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sync": "always"}, "'linger', 'none' and 'each'"),
        ({"segment_size": 0}, "segment_size is 0"),
        ({"segment_size": 100}, "16384"),
        ({"segment_size": 1 << 40}, "segment_size is"),
        ({"linger_ms": 0}, "linger_ms is 0"),
        ({"linger_records": -1}, "linger_records is -1"),
        ({"retain_bytes": 0}, "retain_bytes is 0"),
        ({"retain_age": -5}, "retain_age is -5"),
        ({"capacity": 16}, "options of shm://NAME?log="),
        ({"keep": False}, "has no ring"),
    ],
)
def test_bad_options(log_uri, log_dir, options, word):
    with pytest.raises(ombus.InvalidArgument) as caught:
        ombus.Producer(log_uri, **options)
    assert word in str(caught.value)
    assert not log_dir.exists()


def test_an_unknown_option(log_uri):
    with pytest.raises(TypeError, match="sgement_size"):
        ombus.Producer(log_uri, sgement_size=1 << 20)


def test_a_log_that_must_exist(log_uri, tmp_path):
    with pytest.raises(ombus.LogNotFound) as caught:
        ombus.Producer(log_uri, create=False)
    assert str(tmp_path) in str(caught.value)
    ombus.Producer(log_uri).close()
    ombus.Producer(log_uri, create=False).close()


def test_a_path_that_cannot_be(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ombus.LogCannotOpen) as caught:
        ombus.Producer(f"log://{tmp_path}/file")
    assert "check the path" in str(caught.value)
    assert isinstance(caught.value, OSError)


def test_one_writer(log_uri, child):
    code = "import sys, ombus\np = ombus.Producer(sys.argv[1])\nprint('ready')\nsys.stdin.readline()"
    other = child(code, log_uri)
    other.line()
    with pytest.raises(ombus.LogLocked) as caught:
        ombus.Producer(log_uri)
    assert str(other.pid) in str(caught.value)
    other.kill()
    ombus.Producer(log_uri).close()


def test_what_is_closed_stays_closed(log_uri):
    producer = ombus.Producer(log_uri)
    producer.close()
    for call in (
        lambda: producer.publish(b"x"),
        lambda: producer.try_publish(b"x"),
        lambda: producer.publish_batch([b"x"]),
        lambda: producer.wait_durable(1),
        lambda: producer.last_seq,
        lambda: producer.durable_seq,
        producer.sync,
        producer.stats,
    ):
        with pytest.raises(ombus.Closed):
            call()


def test_a_ring_has_nothing_to_sync(uri):
    with ombus.Producer(uri) as producer:
        for call in (producer.sync, producer.wait_durable, lambda: producer.durable_seq):
            with pytest.raises(ombus.UnsupportedScheme, match="a ring keeps nothing"):
                call()


def test_retention_by_size(log_uri, log_dir):
    with ombus.Producer(log_uri, segment_size=16 << 10, retain_bytes=64 << 10) as producer:
        producer.publish_batch(np.zeros(20_000, "<u8"))
        while producer.stats().segments_pruned < 40:  # by the thread in the background
            producer.publish_batch(np.zeros(500, "<u8"))
            time.sleep(0.01)
    log = ombus.Log(log_dir)
    assert log.first_seq > 10_000
    assert len(log) == log.last_seq + 1 - log.first_seq


def test_retention_waits_for_consumers(log_uri, log_dir):
    options = {"segment_size": 16 << 10, "retain_bytes": 32 << 10, "retain_for_consumers": True}
    with ombus.Producer(log_uri, **options) as producer:
        producer.publish(b"first")
        with ombus.Consumer(log_uri, name="slow") as consumer:
            consumer.poll()
            consumer.save()
            producer.publish_batch(np.zeros(10_000, "<u8"))
            assert ombus.Log(log_dir).first_seq == 1
            while consumer.poll_batch(100_000):
                pass
            consumer.save()
            while ombus.Log(log_dir).first_seq <= 5000:  # by the thread in the background
                producer.publish_batch(np.zeros(500, "<u8"))
                time.sleep(0.01)


def test_prune(log_uri, log_dir):
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch(np.zeros(10_000, "<u8"))
    before = len(ombus.Log(log_dir).segments())
    assert ombus.prune_log(log_dir, max_age=dt.timedelta(hours=1)) == 0
    assert ombus.prune_log(log_dir, max_bytes=1, keep_from=5000) > 0
    first = ombus.Log(log_dir).first_seq
    assert 4000 < first <= 5000
    assert ombus.prune_log(log_uri, max_bytes=1) > 0
    assert 1 <= len(ombus.Log(log_dir).segments()) < before
    with pytest.raises(ombus.LogPruned) as caught:
        list(ombus.Log(log_dir)[first:])
    assert isinstance(caught.value, LookupError)
