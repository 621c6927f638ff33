"""`ombus log` and `ombus lag`, run as people run them."""

import json
import os
import pty
import subprocess
import sys

import numpy as np
import ombus
import pyarrow.ipc
import pyarrow.parquet
import pytest

COMMAND = "import sys; from ombus.cli import main; sys.exit(main())"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def run_json(*arguments, code=0):
    result = run(*arguments, "--format", "json")
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def log(log_uri, log_dir):
    """1000 numbers in several segments, then two texts."""
    with ombus.Producer(log_uri, segment_size=16 << 10) as producer:
        producer.publish_batch(np.arange(1000, dtype="<u8"))
        producer.publish(b"hello", type=9)
        producer.publish(b"\0\1\2binary", type=10)
    return ombus.Log(log_dir)


def break_it(log_dir):
    """Spoil the payload of the 11th record of the second segment; returns its wal_seq."""
    with (log_dir / "0000000002.seg").open("r+b") as file:
        file.seek(4096 + 10 * 40 + 35)
        file.write(b"\xff")
    return ombus.Log(log_dir).segments()[1].first_seq + 10


def test_info(log, log_dir, log_uri):
    info = run_json("log", "info", log_dir, "--segments")
    assert (info["dir"], info["id"], info["records"]) == (str(log_dir), log.id, 1002)
    assert len(info["segment_files"]) == info["segments"] > 2
    assert run_json("log", "info", log_uri)["last_seq"] == 1002
    text = run("log", "info", log_dir).stdout.splitlines()
    assert f"dir             {log_dir}" in text
    assert "records         1002" in text
    assert any(line.startswith("last_time       20") and line.endswith("Z") for line in text)
    assert "sealed" in run("log", "info", log_dir, "--segments").stdout


def test_dump_as_text(log, log_dir):
    lines = run("log", "dump", log_dir, "--from", 1000).stdout.splitlines()
    assert [line.split(maxsplit=5) for line in lines] == [
        ["1000", lines[0].split()[1], "1", "8", "B", "e703000000000000"],
        ["1001", lines[1].split()[1], "9", "5", "B", "hello"],
        ["1002", lines[2].split()[1], "10", "9", "B", b"\0\1\2binary".hex(" ", 8)],
    ]
    assert all(line.split()[1].endswith("Z") for line in lines)


def test_dump_as_hex(log, log_dir):
    output = run("log", "dump", log_dir, "--from", "-1", "--format", "hex").stdout.splitlines()
    assert output[0].split()[0] == "1002"
    assert output[1:] == ["    00000000  00 01 02 62 69 6e 61 72 79                       ...binary"]


def test_dump_as_json_lines(log, log_dir):
    result = run("log", "dump", log_dir, "--format", "json", "--from", 500, "--to", 503)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {
            "wal_seq": record.seq,
            "wal_type": 1,
            "timestamp_ns": record.timestamp_ns,
            "payload_hex": record.payload.hex(),
        }
        for record in log[500:503]
    ]


def test_dump_a_part(log, log_dir):
    assert len(run("log", "dump", log_dir, "--count", 7).stdout.splitlines()) == 7
    assert "hello" in run("log", "dump", log_dir, "--type", 9).stdout
    assert len(run("log", "dump", log_dir, "--type", 9, "--type", 10).stdout.splitlines()) == 2
    time = np.datetime64(log[1001].timestamp_ns // 1000, "us")
    assert len(run("log", "dump", log_dir, "--from", f"{time}Z").stdout.splitlines()) == 2
    assert len(run("log", "dump", log_dir, "--to", f"{time}Z").stdout.splitlines()) == 1000
    result = run("log", "dump", log_dir, "--from", "noon")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "is no time" in result.stderr


def test_dump_over_damage(log, log_dir):
    lost = break_it(log_dir)
    result = run("log", "dump", log_dir)
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == lost - 1
    assert "run `ombus log repair --salvage`" in result.stderr
    result = run("log", "dump", log_dir, "--skip-corrupt")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 1001
    assert f"lost wal_seq {lost} to {lost}" in result.stderr


def test_tail(log_uri, log_dir, child):
    with ombus.Producer(log_uri) as producer:
        producer.publish_batch([b"%d" % i for i in range(1, 31)])
        tail = child(COMMAND, "log", "tail", str(log_dir), "--lines", "2", "--count", "3", "--format", "json")
        assert [json.loads(tail.line())["wal_seq"] for _ in range(2)] == [29, 30]
        producer.publish(b"new")
        assert json.loads(tail.line())["payload_hex"] == b"new".hex()
        assert tail.finish() == ""
        lines = run("log", "tail", log_uri, "--timeout", "0.05").stdout.splitlines()
        assert [int(line.split()[0]) for line in lines] == list(range(22, 32))


def test_verify(log, log_dir):
    result = run("log", "verify", log_dir)
    assert result.returncode == 0
    assert result.stdout.startswith("ok: 1002 records, wal_seq 1 to 1002, in ")
    lost = break_it(log_dir)
    result = run("log", "verify", log_dir)
    assert result.returncode == 1
    assert result.stdout.startswith("frame: ")
    assert "DAMAGED: 1001 records" in result.stdout
    assert "repair --salvage" in result.stderr
    report = run_json("log", "verify", log_dir, code=1)
    assert (report["ok"], report["damages"], report["found"][0]["kind"]) == (False, 1, "frame")
    assert report["found"][0]["lost_first_seq"] == lost


def test_repair_never_deletes_and_says_what_it_moved(log, log_dir):
    assert "nothing had to be cut" in run("log", "repair", log_dir).stdout
    break_it(log_dir)
    damaged = (log_dir / "0000000002.seg").read_bytes()[4096 + 400 : 4096 + 440]
    assert run("log", "repair", log_dir).returncode == 1
    assert list(log_dir.glob("*.cut-*")) == []
    result = run("log", "repair", log_dir, "--salvage")
    assert result.returncode == 0, result.stderr
    (side,) = log_dir.glob("*.cut-*")
    assert f"moved 40 bytes into {side}" in result.stdout
    assert side.read_bytes() == damaged
    assert run("log", "verify", log_dir).returncode == 0
    assert run_json("log", "repair", log_dir)["moved"] == []


def test_repair_needs_the_log_for_itself(log, log_dir, log_uri):
    with ombus.Producer(log_uri):
        result = run("log", "repair", log_dir)
    assert result.returncode == 1
    assert f"in process {os.getpid()}" in result.stderr


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_export_and_import(log, log_dir, tmp_path, name):
    file, copy = tmp_path / name, tmp_path / "copy"
    assert run("log", "export", log_dir, file).stdout == "1002 records exported\n"
    table = pyarrow.parquet.read_table(file) if "parquet" in name else pyarrow.ipc.open_file(file).read_all()
    assert table == log.to_arrow()
    assert run_json("log", "import", copy, file) == {"imported": 1002, "last_wal_seq": 1002, "damaged_offsets": []}
    assert ombus.Log(copy).to_arrow() == table
    again = run("log", "import", copy, file)
    assert again.returncode == 1
    assert "continue after the last" in again.stderr
    part = run_json("log", "export", log_dir, file, "--from", 1000, "--to", 1002)
    assert part["exported"] == 2
    assert list(tmp_path.glob("*.part")) == []


def test_export_and_import_of_what_cannot_be(log, log_dir, tmp_path):
    for arguments, word in (
        (("export", log_dir, tmp_path / "out.csv"), "use --as"),
        (("export", log_dir, tmp_path / "no/out.parquet"), "cannot write"),
        (("export", tmp_path / "none", tmp_path / "x.parquet"), "check the directory"),
        (("import", tmp_path / "new", tmp_path / "none.parquet"), "no such file"),
        (("import", tmp_path / "new", log_dir / "0000000001.seg", "--as", "parquet"), "is no parquet file"),
    ):
        result = run("log", *arguments)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
        assert word in result.stderr
    pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / "x.parquet")
    assert "no column 'payload'" in run("log", "import", tmp_path / "new", tmp_path / "x.parquet").stderr


def test_import_of_payloads_alone(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"payload": [b"a", b"b"]}), tmp_path / "x.parquet")
    assert run("log", "import", tmp_path / "new", tmp_path / "x.parquet").stdout == "2 records imported\n"
    assert list(ombus.Log(tmp_path / "new")) == [ombus.Record(1, 1, b"a"), ombus.Record(2, 1, b"b")]


def test_an_export_that_fails_leaves_no_file(log, log_dir, tmp_path):
    break_it(log_dir)
    result = run("log", "export", log_dir, tmp_path / "out.parquet")
    assert result.returncode == 1
    assert "the log is damaged here" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.glob("out*")) == []


def test_prune(log, log_dir):
    result = run("log", "prune", log_dir)
    assert result.returncode == 1
    assert "--max-bytes or --max-age" in result.stderr
    assert run_json("log", "prune", log_dir, "--max-age", "1h")["removed_segments"] == 0
    run("log", "consumers", log_dir, "--set", "spark", "1")
    assert run_json("log", "prune", log_dir, "--max-bytes", "1k")["removed_segments"] == 0
    result = run("log", "prune", log_dir, "--max-bytes", "1k", "--ignore-consumers")
    assert result.stdout.endswith(f"the log now starts at wal_seq {log.first_seq}\n")
    assert log.first_seq > 500
    assert run("log", "prune", log_dir, "--max-age", "soon").returncode == 2


def test_consumers_and_lag(log, log_dir, uri):
    assert run_json("log", "consumers", log_dir) == []
    (row,) = run_json("log", "consumers", log_dir, "--set", "billing", "1000")
    assert (row["consumer"], row["wal_seq"], row["lag_records"], row["lag_bytes"]) == ("billing", 1000, 2, 88)
    assert row["lag_seconds"] >= 0
    with ombus.Producer(uri) as producer, ombus.Consumer(uri):
        producer.publish(b"x")
        rows = run_json("lag", log_dir, uri)
        assert [(row["stream"], row["lag_records"]) for row in rows] == [(f"log://{log_dir}", 2), (uri, 1)]
        assert uri in [row["stream"] for row in run_json("lag")]
    text = run("lag", f"log://{log_dir}").stdout.splitlines()
    assert text[0].split() == ["stream", "consumer", "wal_seq", "lag_records", "lag_bytes", "lag_seconds", "saved"]
    assert text[1].split()[:4] == [f"log://{log_dir}", "billing", "1000", "2"]
    assert run_json("log", "consumers", log_dir, "--forget", "billing") == []
    assert run("log", "consumers", log_dir, "--forget", "billing").returncode == 1
    assert run("log", "consumers", log_dir, "--set", "a/b", "5").returncode == 1
    assert run("log", "consumers", log_dir, "--set", "a", "x").returncode == 1


def test_a_damaged_consumer_is_shown(log, log_dir):
    run("log", "consumers", log_dir, "--set", "a", "5")
    (log_dir / "consumers/a.cursor").write_bytes(b"?" * 16)
    result = run("log", "consumers", log_dir)
    assert result.stdout.splitlines()[1].split()[:2] == ["a", "-"]
    assert "checksum" in result.stderr


@pytest.mark.parametrize("command", ["info", "tail", "dump", "verify", "repair", "consumers"])
def test_no_log_is_one_line(tmp_path, command):
    result = run("log", command, tmp_path / "none")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert str(tmp_path / "none") in result.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", [["verify"], ["export", "FILE"]])
def test_progress_is_drawn_on_a_terminal_only(log, log_dir, tmp_path, command):
    arguments = [a if a != "FILE" else str(tmp_path / "x.parquet") for a in command]
    arguments.insert(1, str(log_dir))
    assert run("log", *arguments).stderr == ""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "log", *arguments], stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    process.communicate()
    drawn = os.read(ours, 65536).decode()
    os.close(ours)
    assert process.returncode == 0
    assert f"{command[0]} [##############################] 100%" in drawn
    assert drawn.endswith("\r\x1b[K")
