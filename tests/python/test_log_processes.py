"""Real processes on one log: killed writers, several that tail, and nothing lost or doubled."""

import os
import random
import signal
import time

import numpy as np
import ombus
import pytest

WRITE_UNTIL_KILLED = """
import os, sys, ombus
with ombus.Producer(sys.argv[1], segment_size=64 << 10, sync=sys.argv[2], linger_ms=1) as producer:
    print("ready", producer.last_seq, flush=True)
    out = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        for _ in range(10):
            seq = producer.publish(str(producer.last_seq + 1).encode() * 3)
        os.write(out, b"%d\\n" % seq)  # acknowledged
        seq = producer.publish_batch([str(producer.last_seq + 1 + i).encode() * 3 for i in range(50)])
        os.write(out, b"%d\\n" % seq)
"""

TAIL = """
import sys, ombus
total = 0
with ombus.Consumer(sys.argv[1], timeout=60) as consumer:
    print("ready", flush=True)
    for record in consumer:
        total += 1
        assert record.seq == total, (record.seq, total)
        assert int(record.payload) == total
        if total == int(sys.argv[2]):
            break
print("done", total)
"""

TAIL_BATCHES = """
import sys, numpy as np, ombus
rows = int(sys.argv[2])
with ombus.Consumer(sys.argv[1]) as consumer:
    print("ready", flush=True)
    expected = 1
    while expected <= rows:
        assert consumer.wait(60)
        batch = consumer.poll_batch(5000)
        assert (batch.seqs == np.arange(expected, expected + len(batch))).all()
        expected += len(batch)
print("done", expected - 1)
"""


@pytest.mark.parametrize("sync", ["linger", "none", "each"])
def test_a_killed_writer_loses_nothing_it_was_told(log_uri, log_dir, tmp_path, child, sync):
    acknowledged = tmp_path / "acknowledged"
    for _ in range(5):
        writer = child(WRITE_UNTIL_KILLED, log_uri, sync, str(acknowledged))
        resumed_after = int(writer.line().split()[1])
        known = ombus.Log(log_dir).last_seq
        assert resumed_after <= known
        time.sleep(random.uniform(0.005, 0.05))
        writer.kill()
        lines = acknowledged.read_text().split() if acknowledged.exists() else ["0"]
        promised = int(lines[-1]) if lines else 0
        log = ombus.Log(log_dir)
        assert log.last_seq >= promised
        records = list(log)
        assert [record.seq for record in records] == list(range(1, log.last_seq + 1))
        assert all(record.payload == str(record.seq).encode() * 3 for record in records)
        assert ombus.verify_log(log_dir).ok


def test_two_readers_tail_while_segments_rotate(log_uri, child):
    rows = 30_000
    with ombus.Producer(log_uri, segment_size=16 << 10, sync="none") as producer:
        readers = [child(TAIL, log_uri, str(rows)), child(TAIL_BATCHES, log_uri, str(rows))]
        for reader in readers:
            assert reader.line() == "ready"
        for start in range(0, rows, 100):
            producer.publish_batch([b"%08d" % (start + i + 1) for i in range(100)])
        assert producer.stats().rotations > 70
        assert [reader.line() for reader in readers] == [f"done {rows}"] * 2


def test_a_reader_sleeps_until_a_writer_comes_and_goes_on_with_the_next(log_uri, child):
    ombus.Producer(log_uri).close()
    reader = child(TAIL, log_uri, "30")
    reader.line()
    reader.wait_until_asleep()
    for turn in range(3):
        with ombus.Producer(log_uri) as producer:
            assert producer.publish_batch([b"%d" % (turn * 10 + i + 1) for i in range(10)]) == turn * 10 + 10
    assert reader.line() == "done 30"


def test_a_stopped_reader_does_not_stop_the_writer(log_uri, child):
    with ombus.Producer(log_uri) as producer:
        reader = child(TAIL_BATCHES, log_uri, "100000")
        reader.line()
        reader.signal(signal.SIGSTOP)
        producer.publish_batch(np.zeros(100_000, "<u8"))
        reader.signal(signal.SIGCONT)
        assert reader.line() == "done 100000"


def test_durable_positions_are_seen_by_others(log_uri, log_dir, child):
    code = """
import sys, ombus
with ombus.Producer(sys.argv[1], sync="none") as producer:
    producer.publish_batch([b"x"] * 10)
    print("written", flush=True)
    sys.stdin.readline()
    producer.sync()
    print("synced", flush=True)
    sys.stdin.readline()
"""
    writer = child(code, log_uri)
    writer.line()
    log = ombus.Log(log_dir)
    assert (log.last_seq, log.durable_seq) == (10, 0)
    writer.tell("sync")
    writer.line()
    assert log.durable_seq == 10
    info = log.info()
    assert (info.writer_pid, info.writer_alive) == (writer.pid, True)
    writer.kill()
    assert log.info().writer_alive is False


def test_ctrl_c_reaches_who_waits(log_uri, child):
    ombus.Producer(log_uri).close()
    code = """
import sys, ombus
with ombus.Consumer(sys.argv[1]) as consumer:
    print("ready", flush=True)
    try:
        consumer.wait()
    except KeyboardInterrupt:
        print("interrupted")
"""
    reader = child(code, log_uri)
    reader.line()
    reader.wait_until_asleep()
    reader.signal(signal.SIGINT)
    assert reader.line() == "interrupted"


def test_after_a_fork_handles_belong_to_the_parent(log_uri, log_dir, child):
    code = """
import os, sys, ombus
producer = ombus.Producer(sys.argv[1])
producer.publish(b"parent")
consumer = ombus.Consumer(sys.argv[1])
pid = os.fork()
if pid == 0:
    for call in (lambda: producer.publish(b"x"), lambda: producer.publish_batch([b"x"]), consumer.poll):
        try:
            call()
        except ombus.Forked:
            print("forked", flush=True)
    producer.close()
    consumer.close()
    print(len(ombus.Log(sys.argv[1])), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(producer.publish(b"still"), consumer.poll().payload.decode(), flush=True)
producer.close()
"""
    process = child(code, log_uri)
    assert [process.line() for _ in range(5)] == ["forked"] * 3 + ["1", "2 parent"]
    process.finish()
    assert len(ombus.Log(log_dir)) == 2
    ombus.Producer(log_uri).close()


def test_a_forked_child_keeps_no_lock(log_uri, child):
    code = """
import os, sys, ombus
producer = ombus.Producer(sys.argv[1])
pid = os.fork()
if pid == 0:
    print("child", flush=True)
    sys.stdin.readline()
    os._exit(0)
producer.close()
os.waitpid(pid, os.WNOHANG)
ombus.Producer(sys.argv[1]).close()
print("reopened", flush=True)
os.waitpid(pid, 0)
"""
    process = child(code, log_uri)
    assert sorted([process.line(), process.line()]) == ["child", "reopened"]
    process.tell("end")
    assert os.getpid() != process.pid
    process.finish()
