"""Listing, describing and removing rings."""

import os

import ombus
import pytest


def test_inspect_describes_ring_and_consumers(uri):
    shape = {"capacity": 16, "slot_size": 60, "max_consumers": 3}
    with ombus.Producer(uri, **shape) as producer, ombus.Consumer(uri, index=1) as consumer:
        producer.publish_batch([b"x"] * 5, seq=100)
        consumer.poll()
        ring = ombus.inspect(uri)
    assert ring.uri == uri
    assert (ring.capacity, ring.slot_size, ring.max_consumers, ring.crc) == (16, 64, 3, True)
    assert (ring.head, ring.min_tail, ring.last_wal_seq) == (5, 1, 104)
    assert (ring.producer_pid, ring.producer_alive) == (os.getpid(), True)
    assert ring.size_bytes >= 4096 + 3 * 64 + 16 * 64
    slots = ring.consumers
    assert [slot.state.name for slot in slots] == ["FREE", "CLAIMED", "FREE"]
    assert (slots[1].index, slots[1].pid, slots[1].wal_seq, slots[1].lag) == (1, os.getpid(), 100, 4)


def test_rings_lists_what_is_there(uri, shm_file):
    assert uri not in [ring.uri for ring in ombus.rings()]
    with ombus.Producer(uri):
        assert uri in [ring.uri for ring in ombus.rings()]
    ombus.unlink(uri)
    shm_file.write_bytes(b"not a ring" * 1000)
    assert uri not in [ring.uri for ring in ombus.rings()]


def test_unlink_lets_consumers_read_to_the_end_and_tells_everyone(uri):
    with ombus.Producer(uri) as producer, ombus.Consumer(uri) as consumer:
        producer.publish(b"x")
        ombus.unlink(uri)
        with pytest.raises(ombus.RingGone, match="create it again"):
            producer.publish(b"y")
        assert consumer.poll().payload == b"x"
        with pytest.raises(ombus.RingGone, match="open or create it again"):
            consumer.poll()
        with pytest.raises(ombus.CannotOpen):
            ombus.unlink(uri)


def test_a_raw_name(uri):
    raw = uri.replace("shm://", "shm:///raw-")
    with ombus.Producer(raw, keep=False) as producer, ombus.Consumer(raw) as consumer:
        producer.publish(b"x")
        assert consumer.poll().payload == b"x"
        assert ombus.inspect(raw).uri == raw
