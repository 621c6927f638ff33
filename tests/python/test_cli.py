"""The `ombus` command, run as people run it."""

import json
import subprocess
import sys
import time

import ombus
import pytest

COMMAND = "import sys; from ombus.cli import main; sys.exit(main())"


def run(*arguments, stdin=""):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
    )


def run_json(*arguments, stdin=""):
    result = run(*arguments, "--format", "json", stdin=stdin)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def wait_for_consumer(uri):
    while ombus.inspect(uri).consumers[0].state is not ombus.ConsumerState.CLAIMED:
        time.sleep(0.01)


def test_the_command_is_installed():
    command = sys.executable.rpartition("/")[0] + "/ombus"
    result = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert result.stdout == f"ombus {ombus.__version__}\n"


def test_ls_and_stat(uri):
    with ombus.Producer(uri, capacity=16) as producer, ombus.Consumer(uri):
        producer.publish(b"x", seq=7)
        (row,) = [row for row in run_json("ring", "ls") if row["uri"] == uri]
        assert (row["capacity"], row["last_wal_seq"], row["lag"], row["crc"]) == (16, 7, 1, True)
        stat = run_json("ring", "stat", uri)
        assert {**stat, "consumers": None} == {**row, "consumers": None}
        assert [(slot["index"], slot["state"], slot["lag"]) for slot in stat["consumers"]] == [(0, "claimed", 1)]
        assert uri in run("ring", "ls").stdout
        text = run("ring", "stat", uri).stdout
        assert "last_wal_seq    7" in text
        assert "claimed" in text


def test_pub_and_tail(uri, child):
    ombus.Producer(uri).close()
    tail = child(
        COMMAND,
        "ring",
        "tail",
        uri,
        "--count",
        "3",
        "--format",
        "json",
    )
    wait_for_consumer(uri)
    assert run_json("ring", "pub", uri, "hello", "--type", "9") == {"published": 1, "last_wal_seq": 1}
    assert run("ring", "pub", uri, stdin="one\ntwo\n").stdout == "2 published, last wal_seq 3\n"
    lines = [json.loads(line) for line in tail.finish().splitlines()]
    assert lines[0] == {"wal_seq": 1, "wal_type": 9, "payload_hex": b"hello".hex()}
    assert [bytes.fromhex(line["payload_hex"]) for line in lines] == [b"hello", b"one", b"two"]


def test_tail_reads_on_after_what_is_odd(uri, child):
    with ombus.Producer(uri) as producer:
        tail = child(COMMAND, "ring", "tail", uri, "--timeout", "0.5")
        wait_for_consumer(uri)
        producer.publish(b"text")
        producer.publish(b"\0\1\2binary", seq=5)
        output, errors = tail.process.communicate()
    assert tail.process.returncode == 0
    assert [line.split(maxsplit=4) for line in output.splitlines()] == [
        ["1", "1", "4", "B", "text"],
        ["5", "1", "9", "B", b"\0\1\2binary".hex(" ", 8)],
    ]
    assert "expected wal_seq 2, got 5" in errors


def test_tail_ends_when_the_ring_was_created_anew(uri, child):
    with ombus.Producer(uri, capacity=16):
        tail = child(COMMAND, "ring", "tail", uri)
        wait_for_consumer(uri)
    with ombus.Producer(uri, capacity=32):
        _, errors = tail.process.communicate()
    assert tail.process.returncode == 1
    assert "again by name" in errors


def test_rm(uri):
    ombus.Producer(uri).close()
    assert run_json("ring", "rm", uri) == {"removed": [uri]}
    result = run("ring", "rm", uri)
    assert result.returncode == 1
    assert result.stderr.startswith("ombus: cannot open the object or file: check")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("ring",), ("ring", "stat"), ("ring", "fly"), ("ring", "ls", "--format", "x")]
)
def test_wrong_usage(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "usage: ombus" in result.stderr


def test_a_bad_address_is_one_line():
    result = run("ring", "stat", "kafka://x")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "use shm://name" in result.stderr
