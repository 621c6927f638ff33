"""spark.read: columns, bounds, several streams, SQL."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from chispa import assert_df_equality
from conftest import Source, seqs
from native_log import LogWriter, append_counted, payload_of, write_log

SECOND = 1_000_000_000
START_NS = 1_700_000_000 * SECOND


def test_every_column_of_every_record(source: Source, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "engine-0") as log:
        log.append_at((seq, START_NS + seq * 1500, seq % 200, payload_of(seq)) for seq in range(1, 301))
    start = datetime.datetime(2023, 11, 14, 22, 13, 20)
    expected = source.spark.createDataFrame(
        [
            (
                "engine-0",
                seq,
                seq % 200,
                start + datetime.timedelta(microseconds=seq * 1500 // 1000),
                bytearray(payload_of(seq)),
            )
            for seq in range(1, 301)
        ],
        "stream string not null, wal_seq bigint not null, wal_type smallint not null, timestamp timestamp not null, "
        "payload binary",
    )
    assert_df_equality(source.read(tmp_path / "engine-0"), expected, ignore_row_order=True)


def test_a_log_of_many_segments_and_gaps(source: Source, tmp_path: Path) -> None:
    expected = []
    with LogWriter(tmp_path / "gaps", segment_bytes=16384) as log:
        for seq in [*range(5, 2000, 3), 10_000, *range(2**62, 2**62 + 500)]:
            log.append(payload_of(seq, 100), 1, seq)
            expected.append(seq)
    rows = source.read(tmp_path / "gaps").select("wal_seq", "payload").orderBy("wal_seq").collect()
    assert seqs(rows) == expected
    assert all(bytes(row.payload) == payload_of(row.wal_seq, 100) for row in rows)


def test_start_and_end_by_sequence(source: Source, tmp_path: Path) -> None:
    uri = write_log(tmp_path / "engine-0", 1000)
    rows = source.read(uri, startingOffsets='{"engine-0": 100}', endingOffsets='{"engine-0": 200}').collect()
    assert sorted(seqs(rows)) == list(range(100, 200))
    assert source.read(uri, startingOffsets="latest").collect() == []
    assert source.read(uri, endingOffsets='{"*": "latest"}').count() == 1000
    assert source.read(uri, endingOffsets='{"engine-0": 99999}').count() == 1000
    assert source.read(uri, startingOffsets='{"engine-0": 0}').count() == 1000


def test_start_and_end_by_time(source: Source, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "engine-0") as log:
        log.append_at((seq, START_NS + seq * SECOND, 1, b"x") for seq in range(1, 101))
    rows = source.read(
        tmp_path / "engine-0",
        startingTimestamp=(START_NS + 10 * SECOND) // 1_000_000,
        endingTimestamp="2023-11-14T22:13:40Z",
    ).collect()
    assert sorted(seqs(rows)) == list(range(10, 20))
    assert source.read(tmp_path / "engine-0", startingTimestamp="2050-01-01T00:00:00Z").collect() == []


def test_lists_globs_and_names(source: Source, tmp_path: Path) -> None:
    for name in ("engine-0", "engine-1", "other"):
        write_log(tmp_path / name, 10)
    (tmp_path / "engine-without-a-log").mkdir()

    def streams(uri: str) -> list[str]:
        rows = source.read(uri).groupBy("stream").count().collect()
        assert all(row["count"] == 10 for row in rows)
        return sorted(row.stream for row in rows)

    assert streams(f"log://{tmp_path}/engine-0,log://{tmp_path}/other?name=x") == ["engine-0", "x"]
    assert streams(f"log://{tmp_path}/engine-*") == ["engine-0", "engine-1"]
    assert streams(f"log://{tmp_path}/{{other,engine-1}}") == ["engine-1", "other"]
    assert streams(f"log://{tmp_path}/nothing-*") == []
    both = source.spark.read.format("ombus").load([f"log://{tmp_path}/engine-0", f"log://{tmp_path}/engine-1"])
    assert both.count() == 20


def test_names_that_need_care(source: Source, tmp_path: Path) -> None:
    write_log(tmp_path / "größe 5%", 3)
    uri = f"log://{tmp_path}/größe%205%25"
    assert {row.stream for row in source.read(uri).collect()} == {"größe 5%"}


def test_an_empty_log(source: Source, tmp_path: Path) -> None:
    frame = source.read(write_log(tmp_path / "empty", 0))
    assert frame.collect() == []
    assert frame.count() == 0
    row = frame.selectExpr("min(wal_seq) a", "max(wal_seq) b", "count(*) c").collect()[0]
    assert (row.a, row.b, row.c) == (None, None, 0)


def test_partitions(source: Source, tmp_path: Path) -> None:
    uri = write_log(tmp_path / "engine-0", 5000, size=200)
    assert source.read(uri).rdd.getNumPartitions() == 1
    cut = source.read(uri, minPartitions=7)
    assert cut.rdd.getNumPartitions() == 7
    assert sorted(seqs(cut.collect())) == list(range(1, 5001))


def test_wal_types(source: Source, tmp_path: Path) -> None:
    uri = write_log(tmp_path / "engine-0", 300)
    rows = source.read(uri, walTypes="2-3").select("wal_type", "wal_seq").collect()
    assert sorted(seqs(rows)) == [seq for seq in range(1, 301) if 1 + seq % 3 in (2, 3)]
    assert source.read(uri, walTypes="0x80").collect() == []
    assert source.read(uri, walTypes="1").count() == 100


def test_a_live_log_is_read_up_to_now(source: Source, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "live") as log:
        append_counted(log, 1, 50)
        frame = source.read(tmp_path / "live")
        assert frame.count() == 50
        append_counted(log, 51, 50)
        assert frame.count() == 100


def test_sql(source: Source, tmp_path: Path) -> None:
    uri = write_log(tmp_path / "engine-0", 1000)
    source.spark.sql("DROP TABLE IF EXISTS trades")
    source.spark.sql(f"CREATE TABLE trades USING ombus OPTIONS (uri 'log://{uri}', walTypes '1,2')")
    try:
        assert source.spark.sql("SELECT count(*) n FROM trades WHERE wal_type = 1").collect()[0].n == 333
        assert source.spark.sql("SELECT max(wal_seq) n FROM trades").collect()[0].n == 1000
        assert "wal_seq" in source.spark.sql("DESCRIBE trades").toPandas()["col_name"].tolist()
    finally:
        source.spark.sql("DROP TABLE trades")
    source.spark.sql(f"CREATE TEMPORARY VIEW view_of_trades USING ombus OPTIONS (path 'log://{uri}')")
    assert source.spark.sql("SELECT count(*) n FROM view_of_trades").collect()[0].n == 1000


@pytest.mark.parametrize("checked", ["true", "false"])
def test_a_million_records(source: Source, tmp_path: Path, checked: str) -> None:
    count = 1_000_000
    with LogWriter(tmp_path / "big", segment_bytes=16 << 20) as log:
        items = b"".join(seq.to_bytes(8, "little") for seq in range(1, count + 1))
        log.append_array(items, 8)
    frame = source.read(tmp_path / "big", verifyChecksums=checked)
    row = frame.selectExpr(
        "sum(wal_seq) s", "count(distinct wal_seq) d", "sum(conv(hex(reverse(payload)), 16, 10)) p"
    ).collect()[0]
    assert (row.s, row.d, int(row.p)) == (count * (count + 1) // 2, count, count * (count + 1) // 2)


def test_payloads_of_64_mib(source: Source, tmp_path: Path) -> None:
    size = 64 << 20
    with LogWriter(tmp_path / "large", segment_bytes=1 << 20) as log:
        for byte in b"abc":
            log.append(bytes([byte]) * size)
        log.append(b"small")
    rows = (
        source.read(tmp_path / "large")
        .selectExpr("wal_seq", "length(payload) n", "hex(substr(payload, -3)) h")
        .collect()
    )
    assert [(row.n, row.h) for row in sorted(rows)] == [
        (size, "616161"),
        (size, "626262"),
        (size, "636363"),
        (5, "616C6C"),
    ]
