"""An index with a shard without a copy, on a real server: no document is reported absent, or half found."""

import contextlib
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from indexes.cluster import NoMasterError, checking
from indexes.cluster.client import ElasticSettings, PassingError
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.mapping import index_document, mapping
from indexes.interface import BackendUnavailableError, Document
from tests.indexes.cluster.recorder import recording

SHARDS, IDS = 3, [f"d{n}" for n in range(40)]


@pytest.fixture
def store(elastic: str) -> Iterator[ClusterIndex]:
    """Three shards where a node may hold two: the documents in the others are safe and can be read."""
    name = new_name("missing")
    store = ClusterIndex(ElasticSettings((elastic,), name, SHARDS, stateless=True), f"{name}-g000001")
    store.client.indices.create(
        index=store.name,
        settings={
            "number_of_shards": SHARDS,
            "number_of_replicas": 0,
            "index.routing.allocation.total_shards_per_node": SHARDS - 1,
        },
        mappings=mapping(0, "flat", alone=True),
        wait_for_active_shards="0",
    )
    store.client.cluster.health(index=store.name, wait_for_no_initializing_shards=True)
    yield store
    store.client.indices.delete(index=store.name)
    store.close()


def written(store: ClusterIndex) -> tuple[set[str], set[str]]:
    """Write documents to the available shards; return the ids that are available and those that are not."""
    there: set[str] = set()
    for stamp, id_ in enumerate(IDS, start=1):
        lines: Any = index_document(Document(id_, "word"), stamp, ["word"], {}).lines
        answer = store.client.bulk(index=store.name, operations=lines, timeout="100ms")
        if not answer["errors"]:
            there.add(id_)
    return there, {*IDS} - there


def test_a_document_whose_shard_is_missing_is_not_taken_for_absent(store: ClusterIndex) -> None:
    there, unknown = written(store)
    assert there and unknown
    assert store.versions(sorted(there)).keys() == there
    with pytest.raises(BackendUnavailableError, match="_cluster/health"):
        store.versions(sorted(unknown)[:1])
    with pytest.raises(PassingError):
        store.sources(IDS)


def test_nothing_is_counted_or_searched_in_part(store: ClusterIndex) -> None:
    for ask in (
        store.count,
        lambda: store.has_field("lang"),
        store.fields,
        lambda: store.matches([{"match_all": {}}]),
    ):
        with pytest.raises(BackendUnavailableError, match="shard"):
            ask()


@pytest.mark.parametrize(
    ("failed", "successful", "primaries", "active", "whole"),
    [
        (0, 6, 3, 6, True),
        (0, 4, 3, 4, True),  # two copies wait for a node, and no search uses them
        (0, 4, 2, 4, False),
        (0, 4, 3, 5, False),  # a copy that searches may use was missing a moment ago
        (1, 5, 3, 6, False),
    ],
)
def test_a_refresh_counts_when_each_copy_that_can_be_searched_has_done_it(
    failed: int, successful: int, primaries: int, active: int, whole: bool
) -> None:
    """The server takes a minute to report this, and then with status 200."""
    shards = {"total": 6, "successful": successful, "failed": failed}
    with recording() as (url, server):
        health = {"active_primary_shards": primaries, "active_shards": active}
        server.body = orjson.dumps({"_shards": shards, **health})
        store = ClusterIndex(ElasticSettings((url,), "any", SHARDS))
        with contextlib.nullcontext() if whole else pytest.raises(PassingError, match="_cluster/health"):
            store.refresh()
        store.close()


def test_a_node_without_a_master_is_not_led(elastic: str) -> None:
    led = ClusterIndex(ElasticSettings((elastic,), "any"))
    led.check_master()
    with recording() as (url, server):
        server.body = b'{"master_node": null}'
        cut_off = ClusterIndex(ElasticSettings((url,), "any"))
        with pytest.raises(NoMasterError, match="may be outdated"):
            cut_off.check_master()
        cut_off.close()
    led.close()


def health(primaries: int, recovering: int) -> bytes:
    found = {
        "active_primary_shards": primaries,
        "active_shards": primaries,
        "initializing_shards": recovering,
    }
    return orjson.dumps({"_shards": {"total": SHARDS}, **found})


def test_verification_waits_for_shards_that_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the start of a node, when shards are first unassigned, then read from its disk, then available."""
    with recording() as (url, server):
        server.body = health(SHARDS - 1, 0)
        states = iter([health(SHARDS - 1, 1), health(SHARDS, 0)])
        monkeypatch.setattr(
            "indexes.cluster.checking.time.sleep", lambda _: setattr(server, "body", next(states))
        )
        store = ClusterIndex(ElasticSettings((url,), "any", SHARDS))
        assert checking._await_shards(store) == {"missing": 0, "waiting": 0, "recovering": 0}
        assert not list(states)
        monkeypatch.setattr(checking, "RECOVERY", 0)
        server.body = health(SHARDS - 1, 1)
        with pytest.raises(BackendUnavailableError, match="any is recovering: 1 of its 3 shards"):
            checking._await_shards(store)
        server.body = health(SHARDS - 1, 0)
        assert checking._await_shards(store)["missing"] == 1
        store.close()
