"""`ombus ring`: list, describe, read, write and remove rings in shared memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from .._native import Record
from ..consumer import Consumer
from ..errors import ChecksumMismatch, ConsumerStale, Corrupt, EpochChanged, GapDetected, ReorderDetected
from ..producer import Producer
from ..rings import ConsumerInfo, ConsumerState, RingInfo, inspect, rings, unlink
from .commands import Commands, add_command, add_group
from .output import Value, preview, print_fields, print_json, print_table


def add_commands(groups: Commands) -> None:
    """Add `ring` and its subcommands."""
    commands = add_group(groups, "ring", "rings in shared memory")
    add_command(commands, "ls", _ls, "list the rings of this host")
    stat = add_command(commands, "stat", _stat, "describe a ring and its consumers")
    stat.add_argument("uri", help="such as shm://engine-0")
    tail = add_command(commands, "tail", _tail, "print records as they are published")
    tail.add_argument("uri", help="such as shm://engine-0")
    tail.add_argument("--count", type=int, metavar="N", help="stop after N records")
    tail.add_argument("--timeout", type=float, metavar="S", help="stop after S seconds of silence")
    tail.add_argument("--index", type=int, help="consumer slot (any free one)")
    pub = add_command(commands, "pub", _pub, "publish arguments, or each line of the standard input")
    pub.add_argument("uri", help="such as shm://engine-0")
    pub.add_argument("payload", nargs="*", help="one record each")
    pub.add_argument("--type", type=int, default=1, help="wal_type (1)")
    pub.add_argument("--capacity", type=int, default=4096, help="slots of a new ring (4096)")
    pub.add_argument("--slot-size", type=int, default=256, help="bytes of a slot (256)")
    pub.add_argument("--timeout", type=float, metavar="S", help="give up after S seconds of full ring")
    remove = add_command(commands, "rm", _rm, "remove rings")
    remove.add_argument("uri", nargs="+", help="such as shm://engine-0")


def _ls(options: argparse.Namespace) -> None:
    rows = [_ring_row(ring) for ring in rings()]
    if options.format == "json":
        print_json(rows)
    else:
        print_table(rows)


def _stat(options: argparse.Namespace) -> None:
    ring = inspect(options.uri)
    used = [slot for slot in ring.consumers if slot.state is not ConsumerState.FREE]
    consumers = [_consumer_row(slot) for slot in used]
    if options.format == "json":
        print_json({**_ring_row(ring), "consumers": consumers})
        return
    print_fields(_ring_row(ring))
    print_table(consumers)


def _tail(options: argparse.Namespace) -> None:
    with Consumer(options.uri, index=options.index, timeout=options.timeout) as consumer:
        for record in islice(_records(consumer), options.count):
            _print_record(record, options.format)


def _records(consumer: Consumer) -> Iterator[Record]:
    """The records; what is odd about the stream is said, and then reading goes on."""
    while True:
        try:
            record: Record | None = next(consumer)
        except StopIteration:
            return
        except (GapDetected, ReorderDetected) as error:
            print(f"ombus: {error}", file=sys.stderr)
            record = error.record
        except (EpochChanged, ConsumerStale, ChecksumMismatch, Corrupt) as error:
            print(f"ombus: {error}", file=sys.stderr)
            continue
        if record:
            yield record


def _pub(options: argparse.Namespace) -> None:
    lines: Iterable[bytes] = (text.encode() for text in options.payload)
    if not options.payload:
        lines = (line.rstrip(b"\n") for line in sys.stdin.buffer)
    shape = {"capacity": options.capacity, "slot_size": options.slot_size}
    published = 0
    with Producer(options.uri, **shape) as producer:
        for line in lines:
            producer.publish(line, options.type, None, options.timeout)
            published += 1
        last_seq = producer.last_seq
    if options.format == "json":
        print_json({"published": published, "last_wal_seq": last_seq})
    else:
        print(f"{published} published, last wal_seq {last_seq}")


def _rm(options: argparse.Namespace) -> None:
    for uri in options.uri:
        unlink(uri)
    if options.format == "json":
        print_json({"removed": options.uri})


def _ring_row(ring: RingInfo) -> dict[str, Value]:
    return {
        "uri": ring.uri,
        "size_bytes": ring.size_bytes,
        "capacity": ring.capacity,
        "slot_size": ring.slot_size,
        "max_consumers": ring.max_consumers,
        "crc": ring.crc,
        "last_wal_seq": ring.last_wal_seq,
        "lag": ring.head - ring.min_tail,
        "producer_pid": ring.producer_pid,
        "producer_alive": ring.producer_alive,
        "producer_epoch": ring.producer_epoch,
    }


def _consumer_row(consumer: ConsumerInfo) -> dict[str, Value]:
    return {
        "index": consumer.index,
        "state": consumer.state.name.lower(),
        "pid": consumer.pid,
        "wal_seq": consumer.wal_seq,
        "lag": consumer.lag,
    }


def _print_record(record: Record, form: str) -> None:
    if form == "json":
        payload = record.payload.hex()
        print_json({"wal_seq": record.seq, "wal_type": record.type, "payload_hex": payload})
    else:
        size = len(record.payload)
        print(f"{record.seq:>12} {record.type:>3} {size:>5} B  {preview(record.payload)}", flush=True)
