"""`ombus checkpoint` on checkpoints as Spark writes them; tests/python/test_spark_helpers.py has a real query."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import ombus
import pytest
from ombus.checkpoint import Checkpoint, Position

COMMAND = "import sys; from ombus.cli import main; sys.exit(main())"
RATE = '{"offset":10,"timestamp":2000}'  # another source's offset


def run(*arguments):
    return subprocess.run([sys.executable, "-c", COMMAND, *map(str, arguments)], capture_output=True, text=True)


def run_json(*arguments):
    result = run(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def offset(next_seq, stream="engine-0", log_id="5f"):
    return json.dumps({stream: next_seq, "__ids": {stream: log_id}}, separators=(",", ":"))


def write_batch(path, number, *lines, committed=True, watermark_ms=0):
    metadata = {"batchWatermarkMs": watermark_ms, "batchTimestampMs": 1767225600000 + number, "conf": {"a": "b"}}
    for name, text in [
        ("offsets", "\n".join(["v1", json.dumps(metadata), *lines])),
        ("commits", f'v1\n{{"nextBatchWatermarkMs":{watermark_ms}}}'),
    ]:
        folder = path / name
        folder.mkdir(exist_ok=True)
        if name == "offsets" or committed:
            (folder / str(number)).write_text(text)
            (folder / f".{number}.crc").write_bytes(b"crc\0")
    make_old(path)


def make_old(path):
    """As if nobody had used it for a while."""
    for file in path.rglob("*"):
        os.utime(file, (time.time() - 60,) * 2)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "metadata").write_text('{"id":"e89c9c20"}')
    for number, next_seq in enumerate((10, 20, 30)):
        write_batch(path, number, RATE, offset(next_seq))
    return path


@pytest.fixture
def log(tmp_path):
    """A log engine-0 with wal_seq 1 to 50; the second half is younger."""
    uri = f"log://{tmp_path}/engine-0"
    with ombus.Producer(uri) as producer:
        producer.publish_batch([b"x"] * 25)
        middle_ns = time.time_ns()
        time.sleep(0.002)
        producer.publish_batch([b"y"] * 25)
    return uri, middle_ns


def positions(path):
    return {batch.id: batch.positions[1].streams for batch in Checkpoint(path).batches()}


# ---- show ----


def test_show(checkpoint, log):
    shown = run_json("checkpoint", "show", checkpoint)
    assert (shown["query_id"], shown["stateful"], shown["in_use"]) == ("e89c9c20", False, "")
    assert [batch["batch"] for batch in shown["batches"]] == [0, 1, 2]
    last = shown["batches"][-1]
    assert (last["committed"], last["planned_at"]) == (True, "2026-01-01T00:00:00Z")
    assert last["sources"] == {"1": {"engine-0": {"next_wal_seq": 30, "log_id": "5f"}}}

    text = run("checkpoint", "show", checkpoint, "--batches", 1, "--uri", log[0]).stdout.splitlines()
    assert text[0] == "query e89c9c20, without state"
    assert text[1].split() == ["batch", "state", "planned_at", "source", "stream", "next_wal_seq", "lag"]
    assert text[2].split() == ["2", "committed", "2026-01-01T00:00:00Z", "1", "engine-0", "30", "21"]
    assert len(text) == 3


def test_show_a_batch_that_was_not_committed_and_a_source_without_position(checkpoint):
    write_batch(checkpoint, 3, "-", offset(40), committed=False)
    assert run_json("checkpoint", "show", checkpoint)["batches"][-1]["committed"] is False
    assert "planned" in run("checkpoint", "show", checkpoint).stdout


def test_show_without_an_ombus_source(tmp_path):
    write_batch(tmp_path, 0, RATE)
    assert (
        run("checkpoint", "show", tmp_path).stdout
        == "query without an id, without state\nno position of an ombus source\n"
    )


# ---- rewind ----


def test_rewind_to_json(checkpoint):
    before = {name: (checkpoint / "offsets" / name).read_text() for name in "012"}
    done = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 12}')
    assert (done["batch"], done["before"], done["after"]) == (2, {"1": {"engine-0": 30}}, {"1": {"engine-0": 12}})
    assert positions(checkpoint) == {0: {"engine-0": 10}, 1: {"engine-0": 20}, 2: {"engine-0": 12}}
    # Only that line has changed, and Hadoop will find no checksum that does not fit.
    after = (checkpoint / "offsets" / "2").read_text()
    assert json.loads(after.splitlines()[1]) == json.loads(before["2"].splitlines()[1])
    assert [after.splitlines()[0], *after.splitlines()[2:]] == ["v1", RATE, offset(12)]
    assert not (checkpoint / "offsets" / ".2.crc").exists()
    assert (checkpoint / "offsets" / ".1.crc").exists()
    # The backup is as it was.
    assert {name: Path(f"{done['backup']}/offsets/{name}").read_text() for name in "012"} == before
    assert sorted(os.listdir(f"{done['backup']}/commits")) == sorted([*"012", ".0.crc", ".1.crc", ".2.crc"])
    assert any("written again" in note for note in done["notes"])


def test_text_output_says_what_was_done(checkpoint):
    text = run("checkpoint", "rewind", checkpoint, "--to", '{"*": 12}').stdout.splitlines()
    assert text[0] == "after batch 2 the query goes on at:"
    assert [line.split() for line in text[1:3]] == [["source", "stream", "was", "is"], ["1", "engine-0", "30", "12"]]
    assert text[3].startswith(f"the files as they were: {checkpoint}/ombus-backup-")
    assert text[4].startswith("note: the sink is not rewound")


def test_dry_run_changes_nothing(checkpoint):
    files = {file: file.read_bytes() for file in checkpoint.rglob("*") if file.is_file()}
    done = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 12}', "--dry-run")
    assert (done["after"], done["backup"]) == ({"1": {"engine-0": 12}}, None)
    assert files == {file: file.read_bytes() for file in checkpoint.rglob("*") if file.is_file()}


def test_two_rewinds_have_two_backups(checkpoint):
    first = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 12}')
    second = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 15}', "--force")
    assert first["backup"] != second["backup"]
    assert second["before"] == first["after"]


def test_rewind_by_the_log(checkpoint, log):
    uri, middle_ns = log
    log_id = ombus.Log(uri.removeprefix("log://")).info().id
    for to, expected in [("earliest", 1), ("latest", 51), (middle_ns, 26), ('{"engine-0": "earliest"}', 1)]:
        done = run_json("checkpoint", "rewind", checkpoint, "--to", to, "--uri", uri, "--force")
        assert done["after"] == {"1": {"engine-0": expected}}
        assert Checkpoint(checkpoint).last.positions[1] == Position({"engine-0": expected}, {"engine-0": log_id})


def test_only_the_streams_and_sources_that_are_named(tmp_path):
    two = '{"a":5,"b":6,"__ids":{"a":"01","b":"02"}}'
    write_batch(tmp_path, 0, two, two)
    done = run_json("checkpoint", "rewind", tmp_path, "--to", '{"b": 1}', "--source", 1)
    assert done["after"] == {"0": {"a": 5, "b": 6}, "1": {"a": 5, "b": 1}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--to", "earliest"], "name it with --uri"),
        (["--to", "2026-01-01T00:00:00Z"], "name it with --uri"),
        (["--to", '{"engine-1": 3}'], "has no stream engine-1; there is engine-0"),
        (["--to", '{"engine-0": -3}'], "use a wal_seq, earliest or latest"),
        (["--to", '{"engine-0": "x"}'], "use a wal_seq, earliest or latest"),
        (["--to", "{}"], "names no stream"),
        (["--to", "{engine"], "is not JSON"),
        (["--to", "yesterday"], "is no time"),
        (["--to", '{"engine-0": 3}', "--source", "0"], "source 0 is not an ombus source"),
        (["--to", '{"engine-0": 3}', "--uri", "tcp://h:1/engine-0"], "names no log"),
    ],
)
def test_what_cannot_be_done_changes_nothing(checkpoint, arguments, says):
    result = run("checkpoint", "rewind", checkpoint, *arguments)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert says in result.stderr
    assert positions(checkpoint)[2] == {"engine-0": 30}
    assert not list(checkpoint.glob("ombus-backup*"))


def test_a_position_that_the_log_does_not_have(checkpoint, log):
    result = run("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 99}', "--uri", log[0])
    assert "holds wal_seq 1 to 50, not 99" in result.stderr


def test_a_query_that_seems_to_run(checkpoint, child):
    (checkpoint / "commits" / "2").touch()
    result = run("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 3}')
    assert "a query seems to use it (it changed 0 s ago)" in result.stderr
    make_old(checkpoint)
    holder = child(
        "import sys; f = open(sys.argv[1]); print('open', flush=True); input()", str(checkpoint / "metadata")
    )
    holder.line()
    result = run("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 3}')
    assert f"process {holder.pid} has files open in it" in result.stderr
    assert run("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 3}', "--force").returncode == 0


def test_a_planned_batch_counts_as_done_when_there_is_no_state(checkpoint):
    write_batch(checkpoint, 3, RATE, offset(40), committed=False, watermark_ms=7)
    done = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 12}')
    assert done["batch"] == 3
    assert (checkpoint / "commits" / "3").read_text() == 'v1\n{"nextBatchWatermarkMs":7}'
    assert Checkpoint(checkpoint).last.positions[1].streams == {"engine-0": 12}
    assert any("may or may not have its records" in note for note in done["notes"])


def test_a_planned_batch_is_planned_again_when_there_is_state(checkpoint):
    (checkpoint / "state").mkdir()
    write_batch(checkpoint, 3, RATE, offset(40), committed=False, watermark_ms=1767225600000)
    done = run_json("checkpoint", "rewind", checkpoint, "--to", '{"engine-0": 12}')
    assert done["batch"] == 2
    assert sorted(positions(checkpoint)) == [0, 1, 2]
    assert not (checkpoint / "offsets" / ".3.crc").exists()
    notes = " ".join(done["notes"])
    assert "planned again" in notes
    assert "aggregates count what is read again a second time" in notes
    assert "the watermark stays at 2026-01-01T00:00:00Z" in notes


def test_state_without_a_committed_batch_begins_anew(tmp_path):
    (tmp_path / "state").mkdir()
    first = tmp_path / "sources" / "0" / "ombus-initial-offset"
    first.parent.mkdir(parents=True)
    first.write_text(offset(7))
    write_batch(tmp_path, 0, offset(10), committed=False)
    done = run_json("checkpoint", "rewind", tmp_path, "--to", '{"engine-0": 3}')
    assert done["batch"] == -1
    assert first.read_text() == offset(3)
    assert not Checkpoint(tmp_path).batches()
    assert not Checkpoint(tmp_path).stateful  # Spark would refuse to begin with what is left of it
    assert (Path(done["backup"]) / "sources" / "0" / first.name).read_text() == offset(7)


def test_a_ring_s_spool_is_found_in_the_checkpoint(checkpoint):
    spool = checkpoint / "sources" / "1" / "ombus-spool" / "engine-0"
    spool.parent.mkdir(parents=True)
    with ombus.Producer(f"log://{spool}") as producer:
        producer.publish_batch([b"x"] * 5)
    make_old(checkpoint)
    done = run_json("checkpoint", "rewind", checkpoint, "--to", "latest")
    assert done["after"] == {"1": {"engine-0": 6}}
    assert not list(Path(done["backup"]).glob("sources/1/*"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no folder `offsets`"),
        (lambda path: (path / "offsets").mkdir(), "has not planned a batch yet"),
        (lambda path: write_batch(path, 0, RATE), "no ombus source with a position"),
        (lambda path: ((path / "offsets").mkdir(), (path / "offsets/0").write_text("v2\n{}\n")), "only v1 is known"),
        (lambda path: ((path / "offsets").mkdir(), (path / "offsets/0").write_text("v1\n{")), "offsets/0: "),
    ],
)
def test_what_is_no_checkpoint(tmp_path, make, says):
    make(tmp_path)
    result = run("checkpoint", "rewind", tmp_path, "--to", '{"engine-0": 3}', "--force")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert says in result.stderr


def test_a_remote_path():
    result = run("checkpoint", "show", "s3://bucket/checkpoint")
    assert "only local paths" in result.stderr


def test_a_path_as_spark_writes_it(checkpoint):
    assert Checkpoint(f"file:{checkpoint}").path == Checkpoint(f"file://{checkpoint}").path == checkpoint
