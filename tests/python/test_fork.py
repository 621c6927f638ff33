"""After fork() a handle is the parent's: the child gets an error, and its end does not hurt the parent."""

SETUP = """
import os, sys, ombus
uri = sys.argv[1]

def in_child(run):
    pid = os.fork()
    if pid == 0:
        try:
            run()
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, getattr(error, "code", ""), error, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def refused(call):
    try:
        call()
    except ombus.Forked as error:
        assert error.code == -825, error.code
        assert "open it again in the child process" in str(error), error
    else:
        raise AssertionError(f"{call} worked")
"""


def test_both_sides_refuse_in_the_child_and_go_on_in_the_parent(uri, child):
    code = """
producer, consumer = ombus.Producer(uri), ombus.Consumer(uri)

def run():
    refused(lambda: producer.publish(b"x"))
    refused(lambda: producer.publish(b"x", timeout=1))
    refused(lambda: producer.try_publish(b"x"))
    refused(lambda: producer.publish_batch([b"x"] * 5))
    refused(lambda: producer.publish_batch(b"x" * 1_000_000, itemsize=10))
    refused(consumer.poll)
    refused(consumer.poll_batch)
    refused(lambda: consumer.wait(1))
    refused(lambda: next(consumer))
    producer.stats(), consumer.wal_seq, repr(producer), repr(consumer)
    producer.close()
    consumer.close()

assert in_child(run) == 0
assert ombus.inspect(uri).producer_alive
assert ombus.inspect(uri).consumers[0].state is ombus.ConsumerState.CLAIMED
producer.publish(b"parent")
print(consumer.poll().payload)
"""
    assert child(SETUP + code, uri).finish() == "b'parent'\n"


def test_destroy_in_the_child_leaves_the_ring(uri, child):
    code = """
producer = ombus.Producer(uri)
assert in_child(producer.destroy) == 0
assert in_child(lambda: sys.exit(0)) == 1  # SystemExit: handles are dropped without close()
print(producer.publish(b"x"), ombus.inspect(uri).last_wal_seq)
"""
    assert child(SETUP + code, uri).finish().endswith("1 1\n")


def test_views_of_the_parent_in_the_child(uri, child):
    code = """
producer, consumer = ombus.Producer(uri), ombus.Consumer(uri, zero_copy=True)
producer.publish(b"abc")
batch = consumer.poll_batch()
view = batch.payloads[0]

def run():
    global view
    assert bytes(view) == b"abc"
    del view
    refused(batch.release)
    consumer.close()

assert in_child(run) == 0
assert bytes(view) == b"abc"
del view
batch.release()
print(consumer.wal_seq)
"""
    assert child(SETUP + code, uri).finish() == "1\n"


def test_a_fork_while_another_thread_waits_in_the_handle(uri, child):
    code = """
import threading, time
producer, consumer = ombus.Producer(uri, capacity=2), ombus.Consumer(uri)
producer.publish_batch([b"x", b"x"])
thread = threading.Thread(target=producer.publish, args=(b"y",))
thread.start()
while True:  # until it is inside
    try:
        producer.publish(b"z", timeout=0)
    except ombus.Timeout as error:
        if "another thread" in str(error):
            break

def run():
    refused(lambda: producer.publish(b"x"))
    refused(lambda: producer.publish_batch(b"x" * 1_000_000, itemsize=10))
    producer.close()

assert in_child(run) == 0
consumer.poll()
thread.join()
print(producer.last_seq)
"""
    assert child(SETUP + code, uri).finish() == "3\n"


def test_a_child_may_open_its_own(uri, child):
    code = """
producer = ombus.Producer(uri)

def run():
    with ombus.Consumer(uri, timeout=60) as consumer:
        os.write(to_parent, b"1")
        assert next(consumer).payload == b"hello"

from_child, to_parent = os.pipe()
pid = os.fork()
if pid == 0:
    run()
    os._exit(0)
os.read(from_child, 1)
producer.publish(b"hello")
print(os.waitpid(pid, 0)[1])
"""
    assert child(SETUP + code, uri).finish() == "0\n"
