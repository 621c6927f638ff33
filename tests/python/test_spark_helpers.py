"""ombus.read(), read_stream() and `ombus checkpoint` with real queries."""

import ctypes
import datetime as dt
import json
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import ombus
import pytest
from ombus.checkpoint import Checkpoint
from ombus.spark_read import source_options

COMMAND = "import sys; from ombus.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def spark():
    session = ombus.spark("helpers", master="local[2]", spark_ui_enabled=False, spark_sql_shuffle_partitions=1)
    yield session
    session.stop()


@pytest.fixture
def log(tmp_path):
    """Records 1 to 20, of wal_type 1 and 2 in turns."""
    uri = f"log://{tmp_path}/engine-0"
    with ombus.Producer(uri) as producer:
        for number in range(1, 21):
            producer.publish(b"%d" % number, type=1 + number % 2)
    return uri


def ombus_json(*arguments):
    result = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments), "--format", "json"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def seqs(frame):
    return sorted(row.wal_seq for row in frame.select("wal_seq").collect())


# ---- options ----


def test_names_and_values_of_options():
    when = dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc)
    options = source_options(
        {
            "starting_offsets": {"engine-0": 17},
            "startingTimestamp": when,
            "fail_on_data_loss": False,
            "wal_types": [1, 3],
            "max_records_per_trigger": 10,
            "spool_path": None,
            "payload_schema": np.dtype([("a", "<i4")]),
        }
    )
    assert dt.datetime.fromisoformat(options.pop("startingTimestamp")) == when
    assert options == {
        "startingOffsets": '{"engine-0": 17}',
        "failOnDataLoss": "false",
        "walTypes": "1,3",
        "maxRecordsPerTrigger": "10",
        "payloadSchema": "a int32",
    }


def test_an_option_in_both_spellings():
    with pytest.raises(TypeError, match="'walTypes' is given twice"):
        source_options({"wal_types": 1, "walTypes": 1})


def test_only_public_methods_of_the_session_are_used():
    """So that a session of Spark Connect will do, which has no JVM here."""

    class Reader:
        def format(self, name):
            assert name == "ombus"
            return self

        def options(self, **options):
            assert options == {"walTypes": "1"}
            return self

        def load(self, address):
            return address

    remote = SimpleNamespace(read=Reader(), readStream=Reader())
    assert ombus.read(remote, "log:///a", wal_types=1) == "log:///a"
    assert ombus.read_stream(remote, ["log:///a", "log:///b"], wal_types=1) == "log:///a,log:///b"


# ---- reading ----


def test_read(spark, log):
    frame = ombus.read(spark, log)
    assert frame.columns == ["stream", "wal_seq", "wal_type", "timestamp", "payload"]
    first = frame.orderBy("wal_seq").first()
    assert (first.stream, first.wal_seq, first.wal_type, bytes(first.payload)) == ("engine-0", 1, 2, b"1")
    assert seqs(frame) == list(range(1, 21))


def test_read_with_options(spark, log, tmp_path):
    assert seqs(ombus.read(spark, log, starting_offsets={"engine-0": 15}, wal_types=[1])) == [16, 18, 20]
    assert seqs(ombus.read(spark, log, endingOffsets='{"engine-0": 3}')) == [1, 2]
    tenth = ombus.Log(tmp_path / "engine-0")[10].timestamp_ns
    when = dt.datetime.fromtimestamp(tenth // 1000 / 1e6, dt.timezone.utc)
    assert 10 in seqs(ombus.read(spark, log, starting_timestamp=when))
    later = dt.datetime.now(dt.timezone.utc) + dt.timedelta(hours=1)
    assert seqs(ombus.read(spark, log, starting_timestamp=later)) == []


def test_read_several_streams(spark, log, tmp_path):
    other = f"log://{tmp_path}/engine-1"
    with ombus.Producer(other) as producer:
        producer.publish(b"x")
    assert ombus.read(spark, [log, other]).groupBy("stream").count().count() == 2


def test_a_misspelt_option_is_an_error_with_a_suggestion(spark, log):
    with pytest.raises(Exception, match="did you mean 'startingOffsets'"):
        ombus.read(spark, log, starting_offset="earliest").count()


def test_read_stream(spark, log):
    frame = ombus.read_stream(spark, log, starting_offsets="earliest", max_records_per_trigger=8)
    query = frame.writeStream.format("memory").queryName("helped").trigger(availableNow=True).start()
    query.awaitTermination()
    assert seqs(spark.table("helped")) == list(range(1, 21))


# ---- payloads by struct_schema ----

EVERY = [
    *((f"{kind}{size}", f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)),
    *(("f4", "<f4"), ("f8", "<f8"), ("b", "?"), ("s", "S5"), ("raw", "u1", 3)),
    *((f"t_{unit}", f"<M8[{unit}]") for unit in ("s", "ms", "us")),
]


def random_records(dtype, count=50):
    random = np.random.default_rng(7)
    records = np.zeros(count, dtype)
    for name, (kind, *_) in dtype.fields.items():
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            records[name] = random.integers(limits.min, limits.max, count, kind, endpoint=True)
            records[name][:2] = limits.min, limits.max
        elif kind.kind == "f":
            records[name] = random.normal(size=count)
        elif kind.kind == "b":
            records[name] = random.integers(0, 2, count)
        elif kind.kind == "S":
            records[name] = random.choice([b"", b"abc", b"abcde"], count)
        elif kind.kind == "M":
            records[name] = random.integers(0, 2_000_000_000, count)
        else:
            records[name] = random.integers(0, 256, (count, 3))
    return records


def as_python(value):
    if isinstance(value, np.ndarray):
        return bytes(value)
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]").item()
    return value.item().decode() if isinstance(value, bytes) else value.item()


@pytest.mark.parametrize("align", [False, True])
def test_every_numpy_type_arrives(spark, tmp_path, align):
    records = random_records(np.dtype(EVERY, align=align))
    with ombus.Producer(f"log://{tmp_path}/structs") as producer:
        producer.publish_batch(records)
    frame = ombus.read(
        spark, f"log://{tmp_path}/structs", payload_format="struct", payload_schema=records.dtype, mode="FAILFAST"
    )
    utc = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        rows = frame.orderBy("wal_seq").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", utc)
    for row, record in zip(rows, records, strict=True):
        for name in records.dtype.names:
            found = row[name]
            if isinstance(found, dt.datetime):
                found = found.astimezone(dt.timezone.utc).replace(tzinfo=None)
            assert (bytes(found) if name == "raw" else found) == as_python(record[name]), name


class Leg(ctypes.Structure):
    _fields_ = (("price", ctypes.c_int64), ("ratio", ctypes.c_float))


class Trade(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("side", ctypes.c_int8), ("legs", Leg * 2), ("code", ctypes.c_char * 4), ("id", ctypes.c_uint64))


def test_a_packed_ctypes_structure_arrives(spark, tmp_path):
    trade = Trade(-1, (Leg(5, 0.5), Leg(-7, 2.0)), b"ABCD", 2**64 - 1)
    with ombus.Producer(f"log://{tmp_path}/trades") as producer:
        producer.publish(bytes(trade))
    frame = ombus.read(spark, f"log://{tmp_path}/trades", payload_format="struct", payload_schema=Trade)
    row = frame.select("side", "legs_0_price", "legs_1_price", "legs_1_ratio", "code", "id").first()
    assert tuple(row) == (-1, 5, -7, 2.0, "ABCD", 2**64 - 1)


# ---- checkpoints ----


def run_to_parquet(spark, log, folder, **options):
    frame = ombus.read_stream(spark, log, starting_offsets="earliest", **options)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/out")
    query.awaitTermination()


def forget_commit(checkpoint, batch):
    """As if the query had been killed just before it committed the batch."""
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink()


def test_show_lag_and_rewind_of_a_real_query(spark, log, tmp_path):
    run_to_parquet(spark, log, tmp_path, max_records_per_trigger=8)
    checkpoint = tmp_path / "checkpoint"
    shown = ombus_json("checkpoint", "show", checkpoint, "--uri", log)
    assert shown["query_id"]
    assert [batch["committed"] for batch in shown["batches"]] == [True] * len(shown["batches"])
    ends = [batch["sources"]["0"]["engine-0"]["next_wal_seq"] for batch in shown["batches"]]
    assert ends == [9, 17, 21]
    assert shown["batches"][-1]["sources"]["0"]["engine-0"]["lag"] == 0
    assert shown["batches"][-1]["sources"]["0"]["engine-0"]["log_id"] == ombus.Log(tmp_path / "engine-0").info().id
    (reader,) = ombus_json("lag", log)
    assert reader["consumer"].startswith("spark-checkpoint-")

    ombus_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 15}', "--force")
    run_to_parquet(spark, log, tmp_path)
    assert seqs(spark.read.parquet(f"{tmp_path}/out")) == sorted([*range(1, 21), *range(15, 21)])
    # The old files are still what they were.
    (backup,) = checkpoint.glob("ombus-backup-*")
    assert Checkpoint(backup).last.positions[0].streams == {"engine-0": 21}

    ombus_json("checkpoint", "rewind", checkpoint, "--to", "latest", "--uri", log, "--force")
    run_to_parquet(spark, log, tmp_path)
    assert len(seqs(spark.read.parquet(f"{tmp_path}/out"))) == 26


def test_rewind_of_a_batch_that_was_never_committed(spark, log, tmp_path):
    run_to_parquet(spark, log, tmp_path, max_records_per_trigger=8)
    checkpoint = tmp_path / "checkpoint"
    forget_commit(checkpoint, 2)
    ombus_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 19}', "--force")
    run_to_parquet(spark, log, tmp_path)
    assert seqs(spark.read.parquet(f"{tmp_path}/out")) == sorted([*range(1, 21), 19, 20])


def test_rewind_by_time(spark, log, tmp_path):
    run_to_parquet(spark, log, tmp_path)
    time.sleep(0.01)
    now_ns = time.time_ns()
    with ombus.Producer(log) as producer:
        producer.publish(b"21")
    run_to_parquet(spark, log, tmp_path)
    done = ombus_json("checkpoint", "rewind", tmp_path / "checkpoint", "--to", now_ns, "--uri", log, "--force")
    assert done["after"] == {"0": {"engine-0": 21}}


def counts(spark, log, checkpoint):
    """A query with state: how many records of each type it has counted in its life."""
    found = {}

    def keep(batch, number):
        found.update({row.wal_type: row["count"] for row in batch.collect()})

    frame = ombus.read_stream(spark, log, starting_offsets="earliest").groupBy("wal_type").count()
    writer = frame.writeStream.outputMode("update").foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def test_rewind_of_a_query_with_state(spark, log, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    assert counts(spark, log, checkpoint) == {1: 10, 2: 10}
    done = ombus_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 17}', "--force")
    assert any("a second time" in note for note in done["notes"])
    assert counts(spark, log, checkpoint) == {1: 12, 2: 12}


def test_rewind_of_a_query_with_state_before_a_batch_that_was_not_committed(spark, log, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    assert counts(spark, log, checkpoint) == {1: 10, 2: 10}
    with ombus.Producer(log) as producer:
        producer.publish_batch([b"x"] * 3)  # 21 to 23, of type 1
    assert counts(spark, log, checkpoint) == {1: 13}
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
    forget_commit(checkpoint, last)
    done = ombus_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 17}', "--force")
    assert done["batch"] == last - 1
    assert counts(spark, log, checkpoint) == {1: 10 + 2 + 3, 2: 10 + 2}  # before the cut-off batch, and from 17 on


def test_rewind_of_a_query_with_state_that_never_committed(spark, log, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    assert counts(spark, log, checkpoint) == {1: 10, 2: 10}
    for file in (checkpoint / "commits").iterdir():
        file.unlink()
    done = ombus_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 17}', "--force")
    assert done["batch"] == -1
    assert counts(spark, log, checkpoint) == {1: 2, 2: 2}


def test_a_log_that_was_created_anew(spark, log, tmp_path):
    run_to_parquet(spark, log, tmp_path)
    for file in sorted((tmp_path / "engine-0").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    with ombus.Producer(log) as producer:
        producer.publish_batch([b"new"] * 3)
    with pytest.raises(Exception, match="OMBUS_DATA_LOSS_RECREATED"):
        run_to_parquet(spark, log, tmp_path)
    ombus_json("checkpoint", "rewind", tmp_path / "checkpoint", "--to", "earliest", "--uri", log, "--force")
    run_to_parquet(spark, log, tmp_path)
    assert seqs(spark.read.parquet(f"{tmp_path}/out")) == sorted([*range(1, 21), 1, 2, 3])
