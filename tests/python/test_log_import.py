"""OpenMatch's own WAL files: with and without checksums, padded, damaged, cut."""

import json
import zlib

import numpy as np
import ombus
import pytest
from ombus.openmatch import PAGE, OpenMatchWal

from .test_log_cli import run, run_json


def wal_record(seq, kind, payload, crc=True):
    body = (seq << 24 | kind << 16 | len(payload)).to_bytes(8, "little") + payload
    return body + zlib.crc32(body).to_bytes(4, "little") if crc else body


def flush(*records):
    data = b"".join(records)
    return data + bytes(-len(data) % PAGE)


def make(path, count=100, crc=True, per_flush=7, size=lambda seq: seq % 60, first=1):
    records = [ombus.Record(seq, 1 + seq % 6, bytes([seq % 256]) * size(seq)) for seq in range(first, first + count)]
    frames = [wal_record(*record, crc) for record in records]
    path.write_bytes(b"".join(flush(*frames[i : i + per_flush]) for i in range(0, count, per_flush)))
    return records


@pytest.fixture
def path(tmp_path):
    return tmp_path / "engine.wal"


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize("per_flush", [1, 7, 500])
def test_reading_finds_out_about_checksums(path, crc, per_flush):
    records = make(path, 1000, crc, per_flush)
    wal = OpenMatchWal(path)
    assert wal.crc is crc
    assert list(wal) == records
    assert list(OpenMatchWal(path, crc=crc)) == records


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize("left", range(12))
def test_a_flush_that_ends_just_before_a_page(path, crc, left):
    """Fewer zeros than a word has; or none, or a word across the page's end that starts with zeros."""
    overhead = 12 if crc else 8
    first = ombus.Record(1, 1, bytes(PAGE - left - overhead))
    rest = [ombus.Record(2, 2, b""), ombus.Record(3, 1, b"x" * 256)]
    path.write_bytes(flush(wal_record(*first, crc)) + flush(*(wal_record(*record, crc) for record in rest)))
    assert list(OpenMatchWal(path)) == [first, *rest]
    path.write_bytes(flush(wal_record(*first, crc), wal_record(2, 1, b"x" * 256, crc)))
    assert list(OpenMatchWal(path)) == [first, ombus.Record(2, 1, b"x" * 256)]


def test_empty_and_zeroed_files(path):
    path.write_bytes(b"")
    assert list(OpenMatchWal(path)) == []
    path.write_bytes(bytes(3 * PAGE))
    assert list(OpenMatchWal(path)) == []
    with pytest.raises(ombus.CannotOpen, match="No such file"):
        OpenMatchWal(path.with_name("none"))
    with pytest.raises(ombus.InvalidArgument):
        OpenMatchWal(path, crc="maybe")


def test_damage_is_reported_with_its_offset(path):
    records = make(path, 100, per_flush=10)
    data = bytearray(path.read_bytes())
    data[3 * PAGE + 30] ^= 1
    path.write_bytes(data)
    wal = OpenMatchWal(path)
    got = []
    with pytest.raises(ombus.WalDamaged) as caught:
        got.extend(wal)
    assert 3 * PAGE <= caught.value.offset < 3 * PAGE + 60
    assert f"offset {caught.value.offset}: checksum" in str(caught.value)
    assert "--skip-damage" in str(caught.value)
    wal = OpenMatchWal(path, skip_damage=True)
    rest = list(wal)
    assert wal.damaged == [caught.value.offset]
    assert set(rest) < set(records)
    assert rest[-1] == records[-1]
    assert len(rest) >= 90


@pytest.mark.parametrize("crc", [True, False])
def test_a_file_that_was_cut(path, crc):
    make(path, 100, crc, per_flush=1000, size=lambda seq: 50)
    whole = path.read_bytes()
    for size in (3, 20, 1000):
        path.write_bytes(whole[:size])
        with pytest.raises(ombus.WalDamaged):
            list(OpenMatchWal(path, crc=crc))


def test_numbers_that_do_not_rise(path):
    path.write_bytes(flush(wal_record(5, 1, b"x"), wal_record(5, 1, b"y")))
    with pytest.raises(ombus.WalDamaged, match="wal_seq 5 after 5"):
        list(OpenMatchWal(path))


def test_any_bytes_are_no_crash(path):
    random = np.random.default_rng(1)
    for _ in range(200):
        path.write_bytes(random.bytes(int(random.integers(1, 3 * PAGE))))
        list(OpenMatchWal(path, skip_damage=True))


@pytest.mark.parametrize("crc", [True, False])
def test_import(path, tmp_path, crc):
    records = make(path, 40_000, crc, per_flush=500)
    log = tmp_path / "log"
    assert run_json("log", "import", log, path) == {"imported": 40_000, "last_wal_seq": 40_000, "damaged_offsets": []}
    assert list(ombus.Log(log)) == records
    more = make(path, 10, crc, first=40_001)
    assert run("log", "import", log, path, "--crc", "yes" if crc else "no").stdout == "10 records imported\n"
    assert list(ombus.Log(log)[40_001:]) == more


def test_import_of_a_damaged_file(path, tmp_path):
    records = make(path, 100, per_flush=10)
    data = bytearray(path.read_bytes())
    data[5 * PAGE + 30] ^= 1
    path.write_bytes(data)
    result = run("log", "import", tmp_path / "a", path)
    assert result.returncode == 1
    assert "offset 204" in result.stderr
    before = list(ombus.Log(tmp_path / "a"))
    assert before == records[: len(before)]
    assert len(before) >= 50
    result = run("log", "import", tmp_path / "b", path, "--skip-damage", "--format", "json")
    assert result.returncode == 1
    assert len(json.loads(result.stdout)["damaged_offsets"]) == 1
    assert ombus.Log(tmp_path / "b")[-1] == records[-1]
