"""Ctrl-C and signal handlers while a call waits."""

import signal

import ombus
import pytest

FULL_RING = """
import signal, sys, numpy as np, ombus
producer = ombus.Producer(sys.argv[1], capacity=4)
consumer = ombus.Consumer(sys.argv[1])
producer.publish_batch([b"x"] * 4)
"""


@pytest.mark.parametrize(
    "call",
    [
        'producer.publish(b"y")',
        'producer.publish(b"y", timeout=1000)',
        "producer.publish_batch([b'y'] * 10)",
        "producer.publish_batch(np.zeros(1_000_000, '<u8'))",
        "empty.wait()",
        "next(empty)",
    ],
)
def test_ctrl_c_ends_a_call_that_waits(uri, child, call):
    code = f"""
empty = ombus.Consumer(sys.argv[1])
print("waiting")
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", producer.last_seq)
consumer.poll()
print(producer.publish(b"z"))
"""
    process = child(FULL_RING + code, uri)
    assert process.line() == "waiting"
    process.wait_until_asleep()
    process.signal(signal.SIGINT)
    assert process.line() == "interrupted 4"
    assert process.finish() == "5\n"


def test_a_handler_that_returns_lets_the_call_go_on(uri, child):
    code = """
signal.signal(signal.SIGUSR1, lambda *_: print("handled", consumer.poll()))
print("waiting")
print(producer.publish(b"y"))
"""
    process = child(FULL_RING + code, uri)
    assert process.line() == "waiting"
    process.wait_until_asleep()
    process.signal(signal.SIGUSR1)
    assert process.line() == "handled Record(seq=1, type=1, payload=b'x')"
    assert process.finish() == "5\n"


def test_a_handler_cannot_use_the_handle_it_interrupts_but_may_close_it(uri, child):
    code = """
def handler(*_):
    for call in (lambda: producer.publish(b"z"), lambda: producer.publish_batch([b"z"])):
        try:
            call()
        except ombus.HandleBusy as error:
            print(error.code, error)
    print(producer.stats().head)
    producer.close()

signal.signal(signal.SIGUSR1, handler)
print("waiting")
try:
    producer.publish(b"y")
except ombus.Closed as error:
    print(producer.closed, error)
"""
    process = child(FULL_RING + code, uri)
    assert process.line() == "waiting"
    process.wait_until_asleep()
    process.signal(signal.SIGUSR1)
    for _ in range(2):
        assert process.line().startswith("-826 this handle is in use: ")
    assert process.line() == "4"
    assert "close() was called while publish() waited" in process.line()
    process.finish()
    assert ombus.inspect(uri).last_wal_seq == 4


def test_a_handler_may_close_a_consumer_that_waits(uri, child):
    code = """
empty = ombus.Consumer(sys.argv[1])

def handler(*_):
    try:
        empty.poll()
    except ombus.HandleBusy as error:
        print(error)
    empty.close()

signal.signal(signal.SIGUSR1, handler)
print("waiting")
try:
    for record in empty:
        print(record)
except ombus.Closed as error:
    print(error)
print(empty.closed)
"""
    process = child(FULL_RING + code, uri)
    assert process.line() == "waiting"
    process.wait_until_asleep()
    process.signal(signal.SIGUSR1)
    assert "a signal handler that interrupted it" in process.line()
    assert "close() was called while another call waited" in process.line()
    assert process.finish() == "True\n"
