"""The embedded queue: messages in a folder that several processes share."""

import shutil
import threading

import pytest
from kombu import Connection, Queue

from portal.jobs import folder_queue


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "queue" / "messages"


@pytest.fixture
def connect(folder):
    """Opens a further end of the queue, as another process would."""
    folder_queue.install()
    opened = []

    def connect():
        options = {"data_folder_in": folder, "polling_interval": 0.01}
        opened.append(Connection("filesystem://localhost", transport_options=options))
        return opened[-1].SimpleQueue("cpu")

    yield connect
    for connection in opened:
        connection.release()


def taken(queue, count, *, timeout=5):
    payloads = []
    for _ in range(count):
        message = queue.get(timeout=timeout)
        message.ack()
        payloads.append(message.payload)
    return payloads


def test_messages_come_out_in_order_at_the_other_end(connect):
    near, far = connect(), connect()
    for number in range(5):
        near.put({"number": number})
    assert far.qsize() == 5
    assert taken(far, 5) == [{"number": number} for number in range(5)]
    assert far.qsize() == 0


def test_missing_folder_is_an_empty_queue_and_is_made_again(connect, folder):
    queue = connect()
    queue.put({"number": 1})
    shutil.rmtree(folder.parent)
    with pytest.raises(queue.Empty):
        queue.get(timeout=0.1)
    queue.put({"number": 2})
    assert taken(queue, 1) == [{"number": 2}]


def test_messages_of_the_first_queue_overtake_all_others(folder):
    folder_queue.install()
    options = {"data_folder_in": folder, "polling_interval": 0.01, "first": ("light",)}
    got = []
    with Connection("filesystem://localhost", transport_options=options) as connection:
        for queue, number in [("cpu", 1), ("cpu", 2), ("light", 3), ("light", 4), ("cpu", 5)]:
            connection.SimpleQueue(queue).put(number)
        queues = [Queue(name) for name in ("cpu", "light")]
        with connection.Consumer(queues, callbacks=[lambda body, message: (got.append(body), message.ack())]):
            for _ in range(5):
                connection.drain_events(timeout=5)
    assert got == [3, 4, 1, 2, 5]


def test_message_is_taken_by_one_of_many(connect):
    near = connect()
    for number in range(60):
        near.put(number)
    ends, got = [connect() for _ in range(4)], []

    def take(end):
        while True:
            try:
                got.extend(taken(end, 1, timeout=0.5))
            except end.Empty:
                return

    threads = [threading.Thread(target=take, args=(end,)) for end in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(got) == list(range(60))


def test_file_that_is_no_message_is_put_aside(connect, folder):
    queue = connect()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0.cpu.msg").write_text("half a mess")
    queue.put({"number": 1})
    assert taken(queue, 1) == [{"number": 1}]


def test_message_that_was_not_acknowledged_goes_back(connect):
    first, second = connect(), connect()
    first.put({"number": 1})
    first.get(timeout=5)
    first.channel.close()
    assert taken(second, 1) == [{"number": 1}]
