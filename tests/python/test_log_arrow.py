"""The Arrow stream of a log, read by everything that knows the PyCapsule protocol."""

import gc

import numpy as np
import ombus
import pandas
import pyarrow as pa
import pytest
from ombus import _native

SCHEMA = pa.schema(
    [
        pa.field("wal_seq", pa.int64(), nullable=False),
        pa.field("wal_type", pa.int16(), nullable=False),
        pa.field("timestamp", pa.timestamp("ns", "UTC"), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)


@pytest.fixture
def log(log_uri, log_dir):
    """Payloads of 0 to 99 bytes, over several segments."""
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch([bytes([i % 256]) * (i % 100) for i in range(5000)], type=7)
    with ombus.Log(log_dir) as log:
        yield log


def check(table, log):
    assert table["wal_seq"].to_pylist() == [record.seq for record in log]
    assert table["wal_type"].to_pylist() == [record.type for record in log]
    assert table["payload"].to_pylist() == [record.payload for record in log]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [record.timestamp_ns for record in log]


def test_pyarrow(log):
    reader = pa.RecordBatchReader.from_stream(log)
    assert reader.schema == SCHEMA
    table = reader.read_all()
    table.validate(full=True)
    check(table, log)
    assert log.to_arrow() == table
    assert pa.table(log) == table


def test_ranges(log):
    table = log[1000:2000].to_arrow()
    check(table, log[1000:2000])
    assert table.num_rows == 1000
    assert log[9000:].to_arrow() == SCHEMA.empty_table()
    check(log.between(log[4000].timestamp_ns).to_arrow(), log.between(log[4000].timestamp_ns))


def test_batches_are_bounded(log, log_dir):
    def batches(rows, size):
        capsule = _native.arrow_stream(log_dir, 0, 1, 5001, rows, size)

        class Stream:
            def __arrow_c_stream__(self, requested_schema=None):
                return capsule

        return list(pa.RecordBatchReader.from_stream(Stream()))

    by_rows = batches(100, 1 << 20)
    assert [batch.num_rows for batch in by_rows] == [100] * 50
    by_bytes = batches(10_000, 1000)
    assert sum(batch.num_rows for batch in by_bytes) == 5000
    assert all(sum(map(len, batch["payload"].to_pylist())) <= 1000 for batch in by_bytes)
    one_by_one = batches(10_000, 1)
    assert sum(batch.num_rows for batch in one_by_one) == 5000
    for found in (by_rows, by_bytes, one_by_one):
        for batch in found:
            batch.validate(full=True)
        check(pa.Table.from_batches(found), log)
    for rows, size in ((0, 1), (1, 0), (2**31, 1), (1, 2**31)):
        with pytest.raises(ombus.InvalidArgument):
            _native.arrow_stream(log_dir, 0, 1, 2, rows, size)


def test_a_stream_that_nobody_reads_is_given_back(log):
    for _ in range(100):
        log.__arrow_c_stream__()
        pa.RecordBatchReader.from_stream(log)
        next(iter(pa.RecordBatchReader.from_stream(log)))
    gc.collect()
    assert len(list(__import__("os").scandir("/proc/self/fd"))) < 100


def test_columns_outlive_their_batch_and_log(log):
    batch = pa.RecordBatchReader.from_stream(log).read_next_batch()
    payload, expected = batch.column("payload"), log[1000].payload
    del batch
    gc.collect()
    log.close()
    assert payload[999].as_py() == expected


def test_large_payloads(log_uri, log_dir):
    payloads = [bytes([i]) * (5 << 20) for i in range(9)] + [b"small"] * 3
    with ombus.Producer(log_uri, sync="none") as producer:
        producer.publish_batch(payloads)
    table = ombus.Log(log_dir).to_arrow()
    assert table["payload"].num_chunks >= 3
    assert table["payload"].to_pylist() == payloads


def test_pandas(log):
    frame = log.to_pandas()
    assert frame.dtypes.astype(str).to_dict() == {
        "wal_seq": "int64",
        "wal_type": "int16",
        "timestamp": "datetime64[ns, UTC]",
        "payload": "object",
    }
    assert frame["payload"][5] == log[6].payload
    assert frame["timestamp"][0] == pandas.Timestamp(log[1].timestamp_ns, tz="UTC")


def test_pandas_without_pyarrow(log, monkeypatch):
    expected, empty = log.to_pandas(), log[9000:].to_pandas()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    pandas.testing.assert_frame_equal(log.to_pandas(), expected)
    pandas.testing.assert_frame_equal(log[9000:].to_pandas(), empty)
    with pytest.raises(ImportError):
        log.to_arrow()


def test_polars(log):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(log)
    assert frame["wal_seq"].to_list() == list(range(1, 5001))
    assert frame["payload"].to_list() == [record.payload for record in log]
    assert frame.schema["timestamp"] == polars.Datetime("ns", "UTC")
    assert polars.DataFrame(log[:11]).height == 10
    assert polars.DataFrame(log[9000:]).height == 0


def test_duckdb(log):
    duckdb = pytest.importorskip("duckdb")
    stream = pa.RecordBatchReader.from_stream(log)
    query = "select count(*), min(wal_seq), max(wal_seq), sum(octet_length(payload)) from stream"
    assert duckdb.sql(query).fetchall() == [(5000, 1, 5000, sum(len(r.payload) for r in log))]
    del stream
    assert duckdb.sql("select max(wal_seq) from log where wal_seq < 100").fetchall() == [(99,)]


def test_damage_comes_through_as_the_typed_error(log, log_dir):
    segment = sorted(log_dir.glob("*.seg"))[1]
    data = bytearray(segment.read_bytes())
    data[6000:6100] = b"?" * 100
    segment.write_bytes(data)
    with pytest.raises(OSError, match="OM_ERR_LOG_CORRUPT: the log is damaged here"):
        pa.RecordBatchReader.from_stream(log).read_all()
    with pytest.raises(ombus.LogCorrupt) as caught:
        log.to_arrow()
    assert segment.stem in str(caught.value)
    rest = ombus.Log(log_dir, skip_corrupt=True).to_arrow()
    assert 4900 < rest.num_rows < 5000
    assert rest["wal_seq"].to_pylist()[-1] == 5000


def test_numpy_and_arrow_agree(log_uri, log_dir):
    rows = np.random.default_rng(1).integers(0, 2**63, 100_000, np.int64)
    with ombus.Producer(log_uri, sync="none") as producer:
        producer.publish_batch(rows)
    log = ombus.Log(log_dir)
    payload = log.to_arrow()["payload"].combine_chunks()
    assert (np.frombuffer(payload.buffers()[2], np.int64) == rows).all()
    assert (log.to_numpy(np.int64) == rows).all()
