"""Damaged, torn, foreign and full: typed errors that say where and what to do, and mending."""

import os
import subprocess
import warnings

import numpy as np
import ombus
import pytest

FRAME = 40  # of an 8-byte payload
HEADER = 4096


@pytest.fixture
def log(log_uri, log_dir):
    """Three segments of 8-byte records, closed."""
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch(np.arange(1, 801, dtype="<u8"))
    return ombus.Log(log_dir)


def segments(log_dir):
    return sorted(log_dir.glob("*.seg"))


def damage(path, offset, data=b"\xff"):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_damage_in_the_middle(log, log_dir):
    damage(segments(log_dir)[1], HEADER + 10 * FRAME + 35)
    lost = log.segments()[1].first_seq + 10
    with pytest.raises(ombus.LogCorrupt) as caught:
        list(log)
    message = str(caught.value)
    assert "ombus log repair --salvage" in message
    assert segments(log_dir)[1].stem in message
    found = caught.value.damage
    assert found.kind is ombus.DamageKind.FRAME
    assert (found.segment, found.offset) == (2, HEADER + 10 * FRAME)
    assert (found.lost_first_seq, found.lost_last_seq) == (lost, lost)
    for call in (log.to_numpy, lambda dtype: list(log.batches())):
        with pytest.raises(ombus.LogCorrupt):
            call("<u8")
    assert [record.seq for record in log[:lost]] == list(range(1, lost))
    behind = log.segments()[2].first_seq
    assert log[behind:].to_numpy("<u8").tolist() == list(range(behind, 801))


def test_a_consumer_stays_in_front_of_damage(log, log_dir, log_uri):
    damage(segments(log_dir)[0], HEADER + 3 * FRAME + 33)
    with ombus.Consumer(log_uri) as consumer:
        assert consumer.poll_batch().seqs.tolist() == [1, 2, 3]
        for _ in range(2):
            with pytest.raises(ombus.LogCorrupt):
                consumer.poll()
    with ombus.Consumer(log_uri, skip_corrupt=True) as consumer:
        assert len(consumer.poll_batch()) == 3
        with pytest.raises(ombus.LogSkipped) as caught:
            consumer.poll_batch()
        assert caught.value.damage.lost_first_seq == 4
        assert consumer.poll().seq == 5


def test_skip_corrupt_warns(log, log_dir):
    damage(segments(log_dir)[0], HEADER + 3 * FRAME + 33)
    whole = ombus.Log(log_dir, skip_corrupt=True)
    with pytest.warns(RuntimeWarning, match="damage was skipped"):
        assert len(list(whole)) == 799
    with pytest.warns(RuntimeWarning, match="damage was skipped"):
        assert sum(len(batch) for batch in whole.batches()) == 799
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(whole.to_numpy("<u8")) == 799


def test_without_checksums_payloads_are_taken_as_they_are(log, log_dir):
    damage(segments(log_dir)[0], HEADER + 3 * FRAME + 33)
    assert len(list(ombus.Log(log_dir, crc=False))) == 800


def test_verify_and_repair(log, log_dir):
    report = ombus.verify_log(log_dir)
    assert (report.ok, report.records, report.first_seq, report.last_seq, report.found) == (True, 800, 1, 800, ())
    damage(segments(log_dir)[1], HEADER + 10 * FRAME + 35)
    seen = []
    report = ombus.verify_log(log_dir, lambda done, total: seen.append((done, total)))
    assert not report.ok
    assert (report.damages, report.records) == (1, 799)
    assert [found.segment for found in report.found] == [2]
    assert isinstance(report.error, ombus.LogCorrupt)
    assert seen[-1][0] == seen[-1][1]
    assert not ombus.repair_log(log_dir).ok
    report = ombus.repair_log(log_dir, salvage=True)
    assert report.ok
    side = log_dir / report.side_file
    assert side.stat().st_size == FRAME
    assert ombus.verify_log(log_dir).ok
    assert len(list(ombus.Log(log_dir))) == 799


def test_progress_can_stop_it(log, log_dir):
    def stop(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        ombus.verify_log(log_dir, stop)


def test_a_writer_refuses_damage_unless_told_to_salvage(log, log_dir, log_uri):
    last = segments(log_dir)[-1]
    damage(last, HEADER + 5 * FRAME + 35)
    with pytest.raises(ombus.LogCorrupt):
        ombus.Producer(log_uri)
    with ombus.Producer(log_uri, salvage=True) as producer:
        assert producer.repaired.damages == 1
        assert producer.publish(b"x" * 8) == 801
    assert ombus.verify_log(log_dir).ok


def test_a_torn_tail_is_cut_and_kept(log_dir, log_uri, child):
    code = """
import os, signal, sys, ombus
producer = ombus.Producer(sys.argv[1], sync="none")
producer.publish_batch([b"12345678"] * 10)
os.kill(os.getpid(), signal.SIGKILL)
"""
    child(code, log_uri).process.wait()
    damage(segments(log_dir)[0], HEADER + 9 * FRAME + 33)
    report = ombus.verify_log(log_dir)
    assert report.ok
    assert report.tail_bytes == FRAME
    with ombus.Producer(log_uri) as producer:
        assert producer.repaired.tail_bytes == FRAME
        assert (log_dir / producer.repaired.side_file).stat().st_size == FRAME
        assert producer.publish(b"next") == 10
    assert [record.seq for record in ombus.Log(log_dir)] == list(range(1, 11))


@pytest.mark.parametrize("size", [0, 10, HEADER, HEADER + 3 * FRAME + 5])
def test_a_truncated_segment(log, log_dir, log_uri, size):
    os.truncate(segments(log_dir)[1], size)
    with pytest.raises(ombus.Error) as caught:
        list(log)
    assert isinstance(caught.value, (ombus.LogCorrupt, ombus.LogIOError, ombus.LogForeign))
    assert not ombus.verify_log(log_dir).ok
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest = [record.seq for record in ombus.Log(log_dir, skip_corrupt=True)]
    assert rest[0] == 1
    assert rest[-1] == 800


def test_a_missing_segment(log, log_dir):
    segments(log_dir)[1].unlink()
    with pytest.raises(ombus.LogCorrupt) as caught:
        list(log)
    assert caught.value.damage.kind is ombus.DamageKind.MISSING
    report = ombus.verify_log(log_dir)
    assert [found.kind for found in report.found if found.kind is not ombus.DamageKind.INDEX] == [
        ombus.DamageKind.MISSING
    ]


def test_missing_and_wrong_indexes_do_no_harm(log, log_dir):
    for path, data in zip(sorted(log_dir.glob("*.idx")), (None, b"", b"?" * 4096), strict=False):
        path.unlink() if data is None else path.write_bytes(data)
    assert len(list(log[100:700])) == 600
    assert ombus.verify_log(log_dir).ok
    assert ombus.repair_log(log_dir).ok


def test_foreign_and_zeroed_files(log_dir, log_uri):
    log_dir.mkdir()
    (log_dir / "0000000001.seg").write_bytes(b"something else " * 1000)
    with pytest.raises(ombus.Error) as caught:
        ombus.Producer(log_uri)
    assert caught.value.code <= -840
    with pytest.raises(ombus.Error):
        ombus.Log(log_dir)
    (log_dir / "0000000001.seg").write_bytes(bytes(20_000))
    with pytest.raises(ombus.Error):
        ombus.Producer(log_uri)


def test_flipping_any_byte_is_never_a_crash(log_uri, log_dir):
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch(np.arange(10, dtype="<u8"))
    path = segments(log_dir)[0]
    good = path.read_bytes()
    random = np.random.default_rng(1)
    detected = 0
    for offset in [*range(0, 300, 3), *(HEADER + random.integers(0, 10 * FRAME, 200)).tolist()]:
        damage(path, offset, bytes([good[offset] ^ (1 << int(random.integers(0, 8)))]))
        try:
            values = ombus.Log(log_dir).to_numpy("<u8").tolist()
            assert values == list(range(len(values)))
        except (ombus.Error, IndexError):
            detected += 1
        damage(path, offset, good[offset : offset + 1])
    assert detected >= 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount")
    try:
        with ombus.Producer(f"log://{disk}/log", segment_size=128 << 10) as producer:
            with pytest.raises(ombus.LogDiskFull) as caught:
                for _ in range(100):
                    producer.publish_batch(np.zeros(1000, "<u8"))
            assert 0 <= caught.value.published < 1000
            assert isinstance(caught.value, OSError)
            assert "prune the log" in str(caught.value)
            last = producer.last_seq
            assert len(ombus.Log(disk / "log")) == last
            with pytest.raises(ombus.LogDiskFull):
                producer.publish(bytes(200_000))
            assert ombus.prune_log(disk / "log", max_bytes=256 << 10) > 0
            assert producer.publish(b"again") == last + 1
        assert ombus.Log(disk / "log")[-1].payload == b"again"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_errors_are_also_what_python_calls_them():
    assert issubclass(ombus.LogNotFound, FileNotFoundError)
    assert issubclass(ombus.DurabilityTimeout, TimeoutError)
    assert issubclass(ombus.LogRecordTooLarge, ombus.RecordTooLarge)
    assert issubclass(ombus.LogCorrupt, ombus.Corrupt)
