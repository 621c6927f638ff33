"""Consumer: polling, waiting, iterating, and what is raised once and read on after."""

import ombus
import pytest


@pytest.fixture
def pair(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri, timeout=0) as consumer:
        yield producer, consumer


def test_a_consumer_starts_at_the_live_end(uri):
    with ombus.Producer(uri) as producer:
        producer.publish(b"before")
        with ombus.Consumer(uri) as consumer:
            assert consumer.poll() is None
            producer.publish(b"after")
            assert consumer.poll().payload == b"after"


def test_a_record_is_a_light_value(pair):
    producer, consumer = pair
    producer.publish(b"x", 3)
    record = consumer.poll()
    seq, type_, payload = record
    assert (seq, type_, payload) == (record.seq, record.type, record.payload) == (1, 3, b"x")
    assert repr(record) == "Record(seq=1, type=3, payload=b'x')"
    assert record == ombus.Record(seq=1, type=3, payload=b"x")
    assert record != ombus.Record(2, 3, b"x")
    assert record < ombus.Record(2, 0, b"")
    assert record != (1, 3, b"x")
    assert len({record, ombus.Record(1, 3, b"x")}) == 1
    match record:
        case ombus.Record(1, kind):
            assert kind == 3
    with pytest.raises(AttributeError):
        record.seq = 5
    with pytest.raises(TypeError):
        ombus.Record(1, 2, "text")
    with pytest.raises(ombus.InvalidArgument):
        ombus.Record(1, 256, b"")


def test_every_consumer_sees_every_record(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as one, ombus.Consumer(uri, index=5) as other:
        assert (one.index, other.index) == (0, 5)
        producer.publish(b"x")
        assert one.poll() == other.poll() == ombus.Record(1, 1, b"x")


def test_iteration_ends_after_its_timeout(pair):
    producer, consumer = pair
    producer.publish_batch([b"a", b"b"])
    assert [record.payload for record in consumer] == [b"a", b"b"]
    consumer.timeout = 0.01
    assert list(consumer) == []
    assert consumer.timeout == 0.01
    consumer.timeout = None
    assert consumer.timeout is None
    with pytest.raises(ombus.InvalidArgument):
        consumer.timeout = -1


def test_wait_says_whether_there_is_something(pair):
    producer, consumer = pair
    assert consumer.wait(0) is False
    assert consumer.wait(timeout=0.01) is False
    producer.publish(b"x")
    assert consumer.wait(0) is True
    assert consumer.wait() is True


def test_a_gap_is_raised_with_its_record_and_iteration_goes_on(pair):
    producer, consumer = pair
    for seq in (1, 2, 5, 6):
        producer.publish(str(seq).encode(), seq=seq)
    assert [next(consumer).seq for _ in range(2)] == [1, 2]
    with pytest.raises(ombus.GapDetected, match="expected wal_seq 3, got 5") as caught:
        next(consumer)
    assert caught.value.code == -810
    assert caught.value.record == ombus.Record(5, 1, b"5")
    assert [record.seq for record in consumer] == [6]
    assert (consumer.gaps, consumer.wal_seq) == (1, 6)


def test_a_batch_stops_before_a_gap_and_the_next_call_raises_it(pair):
    producer, consumer = pair
    for seq in (1, 2, 5, 6):
        producer.publish(b"", seq=seq)
    assert consumer.poll_batch().seqs.tolist() == [1, 2]
    with pytest.raises(ombus.GapDetected) as caught:
        consumer.poll_batch()
    assert caught.value.record.seq == 5
    assert consumer.poll_batch().seqs.tolist() == [6]


def test_gaps_can_be_ignored(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri, on_gap="ignore", timeout=0) as consumer:
        for seq in (1, 3, 4, 7):
            producer.publish(b"x" * seq, seq=seq)
        assert [record.seq for record in consumer] == [1, 3, 4, 7]
        for seq in (9, 11, 12, 15):
            producer.publish(b"x" * seq, seq=seq)
        batch = consumer.poll_batch()
        assert batch.seqs.tolist()[:1] == [9]
        rest = list(batch) + list(consumer)
        assert [(record.seq, len(record.payload)) for record in rest] == [(9, 9), (11, 11), (12, 12), (15, 15)]
        assert consumer.gaps == 2 + 3


def test_ignored_gaps_do_not_cut_a_batch_into_pieces(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri, on_gap="ignore") as consumer:
        producer.publish(b"", seq=1)
        consumer.poll()
        for seq in range(10, 100, 10):
            producer.publish(bytes(seq), seq=seq)
        batch = consumer.poll_batch()
        assert batch.seqs.tolist() == list(range(10, 100, 10))
        assert batch.sizes.tolist() == list(range(10, 100, 10))
        assert [len(payload) for payload in batch.payloads] == list(range(10, 100, 10))


def test_after_ignored_gaps_another_error_is_not_lost(uri):
    with ombus.Producer(uri, reject_reorder=True) as producer, ombus.Consumer(uri, on_gap="ignore") as consumer:
        for seq, payload in ((1, b"a"), (5, b"b"), (2, b"c")):
            producer.publish(payload, seq=seq)
        assert consumer.poll_batch().seqs.tolist() == [1]
        assert consumer.poll_batch().seqs.tolist() == [5]
        with pytest.raises(ombus.ReorderDetected) as caught:
            consumer.poll_batch()
        assert caught.value.record == ombus.Record(2, 1, b"c")


def test_going_backward_is_raised_when_asked_for(uri):
    with ombus.Producer(uri, reject_reorder=True) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(b"a", seq=5)
        producer.publish(b"b", seq=3)
        assert consumer.poll().seq == 5
        with pytest.raises(ombus.ReorderDetected) as caught:
            consumer.poll()
        assert (caught.value.code, caught.value.record.payload) == (-823, b"b")


def test_a_damaged_record_is_skipped(uri, shm_file):
    with ombus.Producer(uri, capacity=4, max_consumers=1) as producer, ombus.Consumer(uri) as consumer:
        producer.publish_batch([b"one", b"two"])
        with shm_file.open("r+b") as file:
            file.seek(4096 + 64 + 24)
            assert file.read(3) == b"one"
            file.seek(4096 + 64 + 24)
            file.write(b"0ne")
        with pytest.raises(ombus.ChecksumMismatch) as caught:
            consumer.poll()
        assert caught.value.code == -809
        assert consumer.poll() == ombus.Record(2, 1, b"two")


def test_a_stale_consumer_is_told_and_goes_on_at_the_live_end(uri):
    with ombus.Producer(uri, capacity=4, staleness=0.02) as producer, ombus.Consumer(uri) as consumer:
        for _ in range(6):
            producer.publish(b"x")
        with pytest.raises(ombus.ConsumerStale, match="missed 6 records") as caught:
            consumer.poll()
        assert caught.value.code == -821
        assert consumer.missed == 6
        producer.publish(b"y")
        assert consumer.poll() == ombus.Record(7, 1, b"y")


def test_a_new_producer_is_announced_once_after_what_the_former_left(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(b"old")
        producer.close()
        with ombus.Producer(uri) as successor:
            successor.publish(b"new")
            assert consumer.poll().payload == b"old"
            with pytest.raises(ombus.EpochChanged) as caught:
                consumer.poll()
            assert caught.value.code == -820
            assert consumer.poll() == ombus.Record(2, 1, b"new")


def test_a_ring_of_another_shape_must_be_reopened(uri):
    with ombus.Producer(uri, capacity=16) as producer, ombus.Consumer(uri) as consumer:
        producer.close()
        with ombus.Producer(uri, capacity=32):
            for _ in range(2):
                assert consumer.wait(0)
                with pytest.raises(ombus.RingGone, match="again by name"):
                    consumer.poll()


def test_an_old_handle_is_fenced_off(uri):
    with ombus.Producer(uri) as old, ombus.Producer(uri) as new:
        with pytest.raises(ombus.EpochChanged, match="taken over"):
            old.publish(b"x")
        assert new.publish(b"x") == 1


def test_cursor_files_bring_a_position_over_a_restart(pair, tmp_path):
    producer, consumer = pair
    producer.publish_batch([b"", b"", b""], seq=40)
    consumer.poll_batch()
    path = tmp_path / "cursor"
    consumer.save_cursor(path)
    consumer.save_cursor(str(path))
    consumer.save_cursor(bytes(path))
    assert ombus.Consumer.load_cursor(path) == 42
    assert path.stat().st_size == 16


def test_a_bad_cursor_file_is_explained(tmp_path):
    path = tmp_path / "cursor"
    with pytest.raises(ombus.CannotOpen) as caught:
        ombus.Consumer.load_cursor(path)
    assert caught.value.code == -803
    assert str(path) in str(caught.value)
    path.write_bytes(b"short")
    with pytest.raises(ombus.CannotOpen, match="5 bytes"):
        ombus.Consumer.load_cursor(path)
    path.write_bytes(bytes(16))
    with pytest.raises(ombus.ChecksumMismatch) as caught:
        ombus.Consumer.load_cursor(path)
    assert caught.value.code == -809


def test_save_cursor_to_nowhere_fails(pair, tmp_path):
    _, consumer = pair
    with pytest.raises(ombus.CannotOpen, match="No such file"):
        consumer.save_cursor(tmp_path / "no" / "cursor")


def test_close_frees_the_slot(uri):
    with ombus.Producer(uri, max_consumers=1):
        for _ in range(2):
            with ombus.Consumer(uri) as consumer:
                pass
        assert consumer.closed
        consumer.close()
        dropped = ombus.Consumer(uri)
        del dropped
        ombus.Consumer(uri).close()


def test_it_knows_its_ring(pair):
    _, consumer = pair
    assert consumer.max_payload == 256 - 24
