"""A real server that stops, dies, returns and stutters under load: no wrong result, no hang, no lost write."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from indexes.address import Address
from indexes.cluster import RemoteWriter, compare, drop, manifest_of
from indexes.cluster.beside import ServerText, rebuild
from indexes.cluster.breaker import Breaker
from indexes.cluster.bulk import BulkSettings
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.hybrid import Answer
from indexes.interface import BackendUnavailableError, Document
from indexes.rows import Rows
from indexes.store.records import BuildRecord, Manifest
from indexes.text.parameters import AnalysisSettings
from linker.engine import Engine, building
from tests import elastic_server
from tests.elastic_server import Node
from tests.helpers import HashEncoder, sentence

pytestmark = pytest.mark.slow

PLAIN = Manifest(analysis=AnalysisSettings("none"))

TIMEOUT = 3.0
PATIENCE = 30.0  # slack for a loaded machine that must respond within TIMEOUT
WORDS = ["banel", "deras", "kisen", "sugal", "nepol", "tapol"]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """This module's own server, which its tests may break."""
    elastic_server.require()
    with elastic_server.folder() as folder:
        node = Node(folder / "victim")
        node.start()
        yield node
        node.stop()


@pytest.fixture(autouse=True)
def standing(node: Node) -> None:
    """Ensure that the server is up before each test."""
    if node.launcher is None or node.launcher.poll() is not None:
        node.start(wait=False)
    node.wait()


@pytest.fixture
def engine(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """200 documents, BM25 on the server and the vectors embedded; searches end after TIMEOUT."""
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    settings = ElasticSettings((node.url,), new_name("faults"))
    building.create(tmp_path / "index", encoder="hash", elastic=settings)
    filled = Engine(tmp_path / "index", encoder=HashEncoder())
    filled.add(corpus(200))
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", str(TIMEOUT))
    return Engine(tmp_path / "index", encoder=HashEncoder())


def corpus(count: int, prefix: str = "d") -> list[Document]:
    import random

    rng = random.Random(prefix)
    return [Document(f"{prefix}{i}", sentence(rng, 12)) for i in range(count)]


def same(a: Answer, b: Answer) -> bool:
    return [h.ids for h in a.hits] == [h.ids for h in b.hits]


def recovered(engine: Engine) -> Answer:
    """Search until a trial that the breaker lets through succeeds."""
    end = time.monotonic() + 300
    while (answer := engine.search(WORDS, 20)).degraded:
        assert time.monotonic() < end, answer.degraded
        time.sleep(0.2)
    return answer


@contextlib.contextmanager
def stopped(node: Node) -> Iterator[None]:
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)


def breaker(engine: Engine) -> Breaker:
    assert isinstance(engine.collection.text, Breaker)
    return engine.collection.text


def test_a_server_that_hangs_degrades_the_answer_and_recovers_by_itself(engine: Engine, node: Node) -> None:
    whole = engine.search(WORDS, 20)
    dense = engine.search(WORDS, 20, mode="dense")
    assert not whole.degraded
    with stopped(node):
        start = time.monotonic()
        answer = engine.search(WORDS, 20)
        assert time.monotonic() - start < TIMEOUT + PATIENCE
        assert answer.mode == "dense"
        assert "bm25 unavailable" in answer.degraded
        assert "does not answer" in answer.degraded
        assert same(answer, dense)
        with pytest.raises(BackendUnavailableError, match="does not answer"):
            engine.search(WORDS, 20, mode="bm25")
        assert breaker(engine).is_open
        refused = ["no further requests" in engine.search(WORDS, 20).degraded for _ in range(50)]
        assert sum(refused) > 40  # the server is tried only now and then: 50 timeouts would take minutes
        assert time.monotonic() - start < 50 * TIMEOUT
    assert same(recovered(engine), whole)
    assert not breaker(engine).is_open


def test_hybrid_is_back_after_a_few_pings_however_long_the_server_was_away(
    engine: Engine, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = engine.search(WORDS, 20)
    side = breaker(engine).retriever
    pinged, back, before = [0], threading.Event(), side.ping

    def ping() -> None:
        pinged[0] += 1
        before()
        back.set()

    monkeypatch.setattr(side, "ping", ping)
    with stopped(node):
        engine.search(WORDS, 20)
        assert engine.search(WORDS, 20).degraded
        end = time.monotonic() + 300
        while pinged[0] < 6:  # doubling pauses would have reached minutes by then
            assert time.monotonic() < end
            time.sleep(0.1)
        assert not back.is_set()
        missed = pinged[0]
    assert back.wait(PATIENCE)
    assert pinged[0] <= missed + 5
    # the first search after the ping tries the server, and is complete
    assert same(engine.search(WORDS, 20), whole)
    assert not breaker(engine).is_open


def test_the_policy_fail_raises(engine: Engine, node: Node) -> None:
    strict = Engine(engine.directory, encoder=HashEncoder(), on_failure="fail")
    assert not strict.search(WORDS, 5).degraded
    with stopped(node), pytest.raises(BackendUnavailableError, match="bm25 unavailable"):
        strict.search(WORDS, 5)


def test_searches_under_load_are_right_or_say_what_is_missing(engine: Engine, node: Node) -> None:
    """The server stops and resumes intermittently, dies and is restarted, while four threads search.

    While it is dead, a write is refused, and changes nothing; afterwards everything is there again.
    """
    whole, dense = engine.search(WORDS, 20), engine.search(WORDS, 20, mode="dense")
    ended = threading.Event()
    longest, degraded, full = [0.0], [0], [0]

    def load() -> None:
        while not ended.is_set():
            start = time.monotonic()
            answer = engine.search(WORDS, 20)
            longest[0] = max(longest[0], time.monotonic() - start)
            assert same(answer, dense if answer.degraded else whole)
            (degraded if answer.degraded else full)[0] += 1
            time.sleep(0.05)

    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(load) for _ in range(4)]
        try:
            for _ in range(4):
                with stopped(node):
                    time.sleep(0.3)
                time.sleep(0.3)
            with stopped(node):
                time.sleep(2 * TIMEOUT)
            node.kill()
            with pytest.raises(BackendUnavailableError):
                engine.add([Document("late", "text")])
            assert "late" not in Engine(engine.directory, encoder=HashEncoder())
            node.start()
            recovered(engine)
            time.sleep(1)
        finally:
            ended.set()
    for thread in threads:
        thread.result()
    assert full[0]
    assert degraded[0]
    assert longest[0] < TIMEOUT + PATIENCE
    assert same(engine.search(WORDS, 20), whole)
    engine.add([Document("late", "brandnew")])
    assert engine.search("brandnew", 1, mode="bm25").hits[0].ids == ("late",)
    assert compare(engine.directory, engine.collection.manifest).damage == []


COUNT = 8000


def made(node: Node, stem: str, timeout: float, patience: float) -> ClusterIndex:
    store = ClusterIndex(
        ElasticSettings((node.url,), new_name(stem)), timeout=timeout, bulk=BulkSettings(3, patience=patience)
    )
    store.create()
    return store


def load(store: ClusterIndex, acknowledged: list[str], sent: threading.Event) -> None:
    """Send batches until the server refuses one; `sent` says that it has acknowledged some."""
    text = ServerText(PLAIN, Rows(), store)
    for batch in range(100_000):
        ids = [f"b{batch}-{i}" for i in range(50)]
        try:
            text.add(ids, [f"common word{i}" for i in ids])
            store.bulk.flush()
        except BackendUnavailableError:
            return
        acknowledged.extend(ids)
        if batch == 20:
            sent.set()


def check_all_are_there(settings: ElasticSettings, acknowledged: list[str]) -> None:
    """Check that what was acknowledged is there, though the server had no time to flush it."""
    store = ClusterIndex(settings, timeout=60)
    store.client.indices.refresh(index=settings.index)
    starts = range(0, len(acknowledged) + 1000, 1000)
    ids = {s["id"] for start in starts for s in store.fetch(range(start, start + 1000)).values()}
    assert len(acknowledged) >= 1000
    assert set(acknowledged) <= ids
    store.drop()
    store.close()


def check_built(text: ServerText, store: ClusterIndex) -> None:
    """Check that a build lost and doubled nothing."""
    assert store.bulk.retried
    assert store.count() == COUNT
    rows, scores = text.search_rows(["even1", "word7777"], COUNT)
    assert (rows[0] >= 0).sum() == COUNT // 2
    np.testing.assert_array_equal(np.sort(rows[0][: COUNT // 2]), np.arange(1, COUNT, 2))
    assert rows[1][0] == 7777
    assert np.isneginf(scores[1][1:]).all()
    store.drop()
    store.close()


def test_a_kill_loses_no_acknowledged_write_and_ends_no_build(node: Node) -> None:
    """Four loads when the server is killed: one stops there, another one's bulk requests are retried.

    The look-ups of the third, at an address, and the commit of the fourth wait for the server.
    """
    hasty, patient = made(node, "acknowledged", 5, 0), made(node, "outlived", 60, 180)
    text, acknowledged, sent = ServerText(PLAIN, Rows(), patient), list[str](), threading.Event()
    manifest = Manifest(analysis=AnalysisSettings("none"), build=BuildRecord(complete=False))
    documents = [Document(f"d{n}", f"word{n}") for n in range(1000)]
    names = [f"elastic+{node.url}/{new_name(stem)}" for stem in ("looks", "commits")]
    addresses = [address for name in names if (address := Address.of(name))]
    with ThreadPoolExecutor(3) as pool, contextlib.ExitStack() as stack:
        looker, committer = (
            stack.enter_context(RemoteWriter.begin(address, manifest)) for address in addresses
        )
        for writer in (looker, committer):
            writer.add(documents[:500], None)
        loading = pool.submit(load, hasty, acknowledged, sent)
        for start in range(0, COUNT, 500):
            numbers = range(start, start + 500)
            text.add([f"d{i}" for i in numbers], [f"common even{i % 2} word{i}" for i in numbers])
            if start == 2000:
                assert sent.wait(60)
                node.kill()
                loading.result(60)
                hasty.close()
                node.start(wait=False)
                looking = pool.submit(looker.present, [document.id for document in documents[500:]])
                committing = pool.submit(committer.commit, BuildRecord())
        text.commit()
        node.wait()
        assert not looking.result(180)
        looker.add(documents[500:], None)
        looker.commit(BuildRecord())
        committing.result(180)
        check_all_are_there(hasty.settings, acknowledged)
        check_built(text, patient)
    assert [manifest_of(Path(str(address))).documents for address in addresses] == [1000, 500]
    for address in addresses:
        drop(address)


def test_a_lost_index_is_named_with_its_remedy(engine: Engine) -> None:
    store = breaker(engine).retriever.index  # type: ignore[attr-defined]  # the retriever is a ClusterText
    whole = engine.search(WORDS, 20)
    store.drop()
    assert "linker index rebuild" in engine.search(WORDS, 20).degraded
    rebuild(engine.directory, {})
    assert same(recovered(engine), whole)
