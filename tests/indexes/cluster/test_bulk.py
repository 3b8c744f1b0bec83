"""Bulk writes against a fake server that is busy, dies, and refuses: each document arrives effectively once."""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from indexes.cluster import bulk as elastic_bulk
from indexes.cluster.bulk import Bulk, BulkOutcome, BulkSettings, Operation
from indexes.interface import BackendUnavailableError, IndexesError

QUICK = BulkSettings(workers=3, patience=20, first_delay=0.001, longest_delay=0.002)
PUT = Operation(b"a", b"{}")


class Server:
    """Takes index and delete operations; `busy` is the chance that it defers one, `broken` that it does not
    respond."""

    def __init__(self, busy: float = 0.0, broken: float = 0.0) -> None:
        self.busy, self.broken, self.rng, self.lock = busy, broken, random.Random(3), threading.Lock()
        self.stored: dict[bytes, bytes] = {}
        self.seen: Counter[bytes] = Counter()
        self.at_once = self.most_at_once = 0

    def send(self, lines: Sequence[bytes]) -> list[BulkOutcome]:
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.001)
        with self.lock:
            self.at_once -= 1
            outcomes = []
            for action, source in zip(lines[::2], lines[1::2], strict=True):
                self.seen[action] += 1
                if self.rng.random() < self.busy:
                    outcomes.append(BulkOutcome(self.rng.choice([429, 503]), "busy"))
                    continue
                self.stored[action] = source
                outcomes.append(BulkOutcome(201))
            if self.rng.random() < self.broken:  # it may have stored them nevertheless
                raise BackendUnavailableError("no answer")
            return outcomes


def operations(count: int) -> list[Operation]:
    return [Operation(b"id%d" % i, b"text %d" % i) for i in range(count)]


@pytest.mark.parametrize(("busy", "broken"), [(0, 0), (0.3, 0), (0, 0.3), (0.3, 0.3)])
def test_only_what_failed_is_sent_again(busy: float, broken: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_bulk, "CHUNK_OPERATIONS", 20)
    server = Server(busy, broken)
    bulk = Bulk(server.send, QUICK)
    for operation in operations(1000):
        bulk.put(operation)
    bulk.flush()
    assert server.stored == {o.action: o.source for o in operations(1000)}
    assert sum(server.seen.values()) == 1000 + bulk.retried
    assert (bulk.retried > 0) == (busy > 0 or broken > 0)
    if busy and not broken:  # accepted operations are not sent again
        assert bulk.retried < 1000
    assert server.most_at_once <= QUICK.workers
    bulk.close()


def test_only_the_busy_ones_go_again() -> None:
    sent: list[list[bytes]] = []

    def send(lines: Sequence[bytes]) -> list[BulkOutcome]:
        sent.append(list(lines[::2]))
        return [BulkOutcome(429 if len(sent) == 1 and i % 2 else 200) for i in range(len(lines) // 2)]

    bulk = Bulk(send, QUICK)
    for operation in operations(6):
        bulk.put(operation)
    bulk.flush()
    assert sent == [[b"id%d" % i for i in range(6)], [b"id1", b"id3", b"id5"]]
    bulk.close()


@pytest.mark.parametrize(
    ("outcome", "operation", "settings", "error", "match"),
    [
        (BulkOutcome(400, "mapper_parsing_exception: no number"), PUT, QUICK, IndexesError, "no number"),
        (BulkOutcome(404, "index_not_found_exception: no such index"), Operation(b"a"), QUICK, IndexesError,
         "no such index"),
        (BulkOutcome(503, "no shard"), PUT, BulkSettings(patience=0.05), BackendUnavailableError,
         r"1 documents .* 0\.05 s: no shard"),
    ],
    ids=["refused for good", "a deletion from an index that is gone", "patience ends"],
)  # fmt: skip
def test_a_failure_names_the_reason(
    outcome: BulkOutcome, operation: Operation, settings: BulkSettings, error: type[Exception], match: str
) -> None:
    bulk = Bulk(lambda _: [outcome], settings)
    bulk.put(operation)
    with pytest.raises(error, match=match):
        bulk.flush()
    bulk.close()


def test_a_deletion_of_what_is_not_there_is_none() -> None:
    bulk = Bulk(lambda lines: [BulkOutcome(404)] * len(lines), QUICK)
    bulk.put(Operation(b"a"))
    bulk.flush()
    bulk.put(Operation(b"a", b"{}"))  # for a document, this means that the index is gone
    with pytest.raises(IndexesError, match="404"):
        bulk.flush()
    bulk.close()


def test_put_waits_while_too_much_is_under_way_and_brings_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_bulk, "CHUNK_OPERATIONS", 1)
    gate = threading.Event()
    requests = threading.Semaphore(0)

    def send(lines: Sequence[bytes]) -> list[BulkOutcome]:
        requests.release()
        assert gate.wait(30)
        return [BulkOutcome(400, "never")]

    bulk = Bulk(send, BulkSettings(workers=2))
    queued: list[Operation] = []

    def feed() -> None:
        with pytest.raises(IndexesError, match="never"):
            for operation in operations(100):
                bulk.put(operation)
                queued.append(operation)

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert requests.acquire(timeout=30)
    time.sleep(0.1)
    assert len(queued) == 4  # two in flight, two waiting; the fifth waits for room
    gate.set()
    feeder.join(30)
    assert not feeder.is_alive()
    assert len(queued) < 100
    bulk.close()


def test_closing_ends_a_wait() -> None:
    bulk = Bulk(lambda lines: [BulkOutcome(429, "busy")], BulkSettings(patience=1000, first_delay=500))
    bulk.put(Operation(b"a", b"{}"))
    bulk._submit()
    start = time.monotonic()
    bulk.close()
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("source", [None, b"text"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "shard_not_found_exception: no such shard"), (500, "i_o_exception: No space left on device")],
)
def test_what_a_dead_copy_did_not_do_is_sent_again(source: bytes | None, status: int, reason: str) -> None:
    """Seen when a node's disk filled up: a deletion would have been lost, and a document refused."""
    answers = [[BulkOutcome(status, reason)], [BulkOutcome(200)]]
    bulk = Bulk(lambda _: answers.pop(0), QUICK)
    bulk.put(Operation(b"a", source))
    bulk.flush()
    assert not answers and bulk.retried == 1
