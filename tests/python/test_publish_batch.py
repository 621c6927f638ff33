"""publish_batch(): arrays, buffers and lists as records."""

import array

import numpy as np
import ombus
import pytest

TRADE = np.dtype([("price", "<i8"), ("volume", "<u4"), ("side", "u1")])


@pytest.fixture
def pair(uri):
    with ombus.Producer(uri, slot_size=4096) as producer, ombus.Consumer(uri, timeout=0) as consumer:
        yield producer, consumer


def payloads(consumer):
    return [record.payload for record in consumer]


def test_a_structured_array_is_one_record_per_row(pair):
    producer, consumer = pair
    trades = np.array([(100, 5, 0), (101, 6, 1)], TRADE)
    assert producer.publish_batch(trades, 3) == 2
    assert list(consumer) == [ombus.Record(i + 1, 3, trades[i].tobytes()) for i in range(2)]


def test_a_plain_array_is_one_record_per_number(pair):
    producer, consumer = pair
    producer.publish_batch(np.arange(5, dtype="<u8"), seq=10)
    batch = consumer.poll_batch()
    assert batch.seqs.tolist() == [10, 11, 12, 13, 14]
    assert batch.to_numpy("<u8").tolist() == [0, 1, 2, 3, 4]


def test_rows_of_a_matrix_are_records(pair):
    producer, consumer = pair
    matrix = np.arange(24, dtype="u1").reshape(2, 3, 4)
    producer.publish_batch(matrix)
    assert payloads(consumer) == [matrix[0].tobytes(), matrix[1].tobytes()]


def test_rows_may_lie_apart(pair):
    producer, consumer = pair
    numbers = np.arange(10, dtype="<u4")
    producer.publish_batch(numbers[1::3])
    assert payloads(consumer) == [numbers[i].tobytes() for i in (1, 4, 7)]
    column = np.zeros(3, TRADE)
    column["price"] = [7, 8, 9]
    producer.publish_batch(column["price"])
    assert payloads(consumer) == [np.int64(i).tobytes() for i in (7, 8, 9)]


def test_types_that_buffers_cannot_describe(pair):
    producer, consumer = pair
    times = np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]")
    producer.publish_batch(times)
    assert (consumer.poll_batch().to_numpy("datetime64[ns]") == times).all()


def test_other_buffers_with_an_item_size(pair):
    producer, consumer = pair
    producer.publish_batch(array.array("d", [1.5, 2.5]))
    producer.publish_batch(memoryview(b"aabbcc").cast("H"))
    assert payloads(consumer)[2:] == [b"aa", b"bb", b"cc"]


@pytest.mark.parametrize("raw", [b"aaabbbccc", bytearray(b"aaabbbccc"), memoryview(b"aaabbbccc")])
def test_bytes_are_cut_by_itemsize(pair, raw):
    producer, consumer = pair
    assert producer.publish_batch(raw, itemsize=3) == 3
    assert payloads(consumer) == [b"aaa", b"bbb", b"ccc"]


def test_a_list_may_mix_kinds_and_sizes(pair):
    producer, consumer = pair
    items = [b"a", bytearray(b"bb"), memoryview(b"ccc"), b"", np.int32(5)]
    assert producer.publish_batch(items, type=2) == 5
    assert payloads(consumer) == [b"a", b"bb", b"ccc", b"", b"\5\0\0\0"]


def test_any_iterable_of_payloads_will_do(pair):
    producer, consumer = pair
    producer.publish_batch(str(i).encode() for i in range(3))
    producer.publish_batch((b"3",))
    assert payloads(consumer) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("empty", [[], (), np.empty(0, TRADE), array.array("d")])
def test_nothing_is_published_from_nothing(pair, empty):
    producer, consumer = pair
    producer.publish(b"x", seq=5)
    assert producer.publish_batch(empty) == 5
    assert payloads(consumer) == [b"x"]


@pytest.mark.parametrize(
    ("items", "named", "why"),
    [
        (b"abc", {}, "say how long a record is with itemsize="),
        (np.zeros(4, "u1"), {}, "itemsize="),
        (b"abcd", {"itemsize": 3}, "4 bytes are not a multiple of itemsize 3"),
        (b"abcd", {"itemsize": 0}, "not a multiple of itemsize 0"),
        (b"abcd", {"itemsize": -1}, "itemsize is -1"),
        (np.zeros(8, "<u4")[::2], {"itemsize": 4}, "contiguous"),
        (np.zeros(8, "<u4")[::-1], {}, "backward"),
        (np.zeros((4, 4), "<u4")[:, ::2], {}, "rows of the array are not contiguous"),
        (np.array(5), {}, "at least one dimension"),
        (np.zeros(3, "<u4"), {"seq": 2**64 - 2}, "wal_seq ends at"),
        (np.zeros(3, "<u4"), {"type": 300}, "type is 300"),
    ],
)
def test_what_cannot_be_records_is_explained(pair, items, named, why):
    producer, consumer = pair
    with pytest.raises(ombus.InvalidArgument, match=why):
        producer.publish_batch(items, **named)
    assert producer.last_seq == 0
    assert consumer.poll() is None


@pytest.mark.parametrize("items", [["text"], [b"a", None], 5, [b"a", np.zeros(4)[::2]]])
def test_what_is_no_buffer_is_python_s_own_error(pair, items):
    producer, consumer = pair
    with pytest.raises((TypeError, ValueError, BufferError)):
        producer.publish_batch(items)
    assert consumer.poll() is None


@pytest.mark.parametrize(
    "items", [[b"a", bytes(5000)], [b"a", bytes(70000)], np.zeros((2, 5000), "u1"), np.zeros((2, 70000), "u1")]
)
def test_all_sizes_are_checked_before_the_first_record(pair, items):
    producer, consumer = pair
    with pytest.raises(ombus.RecordTooLarge) as caught:
        producer.publish_batch(items)
    assert caught.value.code == -806
    assert consumer.poll() is None


@pytest.mark.parametrize("rows", [10, 100_000])
def test_a_timeout_says_how_many_were_published(uri, rows):
    with ombus.Producer(uri, capacity=8) as producer, ombus.Consumer(uri, timeout=0) as consumer:
        with pytest.raises(ombus.Timeout) as caught:
            producer.publish_batch(np.arange(rows, dtype="<u8"), timeout=0.02)
        assert caught.value.published == producer.last_seq == 8
        with pytest.raises(ombus.Timeout) as caught:
            producer.publish_batch([b"x"], timeout=0)
        assert caught.value.published == 0
        assert [record.seq for record in consumer] == list(range(1, 9))


def test_items_are_not_held_after_the_call(pair):
    producer, _ = pair
    raw = bytearray(b"abcdef")
    producer.publish_batch(raw, itemsize=2)
    producer.publish_batch([raw])
    raw.append(1)  # BufferError if an export were left
