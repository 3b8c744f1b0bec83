"""Indexes on each kind of server, and a server that records requests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from indexes.cluster import PRODUCTS
from indexes.hybrid import Answer, Mode
from indexes.interface import Document
from indexes.writer import writer_of
from linker.corpora import read_corpus
from linker.engine import Engine, building
from tests.contract.cluster import addresses
from tests.helpers import HashEncoder, write_corpus
from tests.indexes.cluster.recorder import Recorder, recording

Make = Callable[..., Engine]
MODES: tuple[Mode, ...] = ("bm25", "dense", "hybrid")
QUERIES = ["banel deras", "kisen", "mudom sugal nepol banel banel", "nothing", "tapol suvik radom"]
LONG_QUERIES = ["kisen", "banel deras", "mudom sugal nepol banel banel", "deras tapol suvik radom lodom"]


def embedded(tmp_path: Path, language: str = "english") -> Engine:
    """Make an empty index in a directory alone."""
    building.create(tmp_path / f"embedded-{language}", encoder="hash", language=language)
    return Engine(tmp_path / f"embedded-{language}", encoder=HashEncoder())


def documents(count: int, prefix: str = "d", seed: int = 0, *, folder: Path) -> list[Document]:
    """Return the documents of a synthetic corpus."""
    records = list(read_corpus(write_corpus(folder / "c.jsonl", count, seed=seed, prefix=prefix), None))
    return [r for r in records if isinstance(r, Document)]


def assert_same(mine: Answer, theirs: Answer) -> None:
    """Check that the answers are the same, with scores that a server rounds."""
    assert (mine.mode, mine.degraded) == (theirs.mode, theirs.degraded)
    for a, b in zip(mine.hits, theirs.hits, strict=True):
        assert a.ids == b.ids
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-4, atol=1e-6)
        assert [hit.document for hit in a] == [hit.document for hit in b]


def phrased(folder: Path) -> list[Document]:
    """Return documents for `assert_same_phrases`."""
    return [
        *documents(60, folder=folder), Document("in-order", "banel and then deras kisen, again deras kisen"),
        Document("apart", "kisen deras banel deras"), Document("inflected", "the deras, kisens"),
        Document("gone", "banel and then deras kisen"),
    ]  # fmt: skip


FILTERS: tuple[Any, ...] = (
    None, "lang=en", ["lang=en", "group=3"], ["lang!=en", "group>=2"], "group<3", "lang=b",
)  # fmt: skip


def assert_same_answers(mine: Engine, theirs: Engine, folder: Path) -> list[Document]:
    """Fill both in two parts, and check that they have the same answers; return the documents."""
    texts = documents(300, folder=folder)
    for engine in (mine, theirs):
        engine.add(texts[:200])
        engine.add(texts[200:])
    for mode in MODES:
        for where in FILTERS:
            for k in (1, 10, 1000):
                assert_same(*(e.search(QUERIES, k, mode=mode, where=where) for e in (mine, theirs)))
    return texts


def assert_same_phrases(mine: Engine, theirs: Engine, folder: Path) -> None:
    """Fill both, and check that queries with quoted words have the same answers."""
    queries = ['"deras kisen" banel', 'banel "and then" «deras kisen»', '"deras" "banel"', '"nowhere"', '" "']
    for engine in (mine, theirs):
        engine.add(phrased(folder))
    for mode in MODES:
        for where in (None, "lang=en"):
            both = (e.search(queries, 20, mode=mode, where=where, phrases=True) for e in (mine, theirs))
            assert_same(*both)
    assert mine.search(queries[1], phrases=True).hits[0].ids[0] == "in-order"


def long_documents(count: int) -> list[Document]:
    """Return documents of 20 to 400 words, whose lengths a server rounds."""
    random, words = Random(0), sorted({word for query in LONG_QUERIES for word in query.split()})
    weights = [1 / (n + 1) for n in range(len(words))]
    return [
        Document(f"d{n}", " ".join(random.choices(words, weights, k=random.randrange(20, 400))))
        for n in range(count)
    ]


def assert_same_bm25(mine: Engine, theirs: Engine) -> None:
    """Check that the top long documents are the same, with the same scores bit for bit, before and after changes."""
    texts = long_documents(300)

    def check() -> None:
        for k in (1, 10, 60):
            one, other = (e.search(LONG_QUERIES, k, mode="bm25").hits for e in (mine, theirs))
            for a, b in zip(one, other, strict=True):
                assert (a.ids, list(a.scores)) == (b.ids, list(b.scores))

    for engine in (mine, theirs):
        engine.add(texts[:200])
    check()
    for engine in (mine, theirs):  # the statistics follow
        engine.add(texts[200:])
        engine.delete([text.id for text in texts[:20]])
    with writer_of(theirs.directory) as writer:  # until it is compacted, a directory counts removed documents
        writer.compact()
    theirs = Engine(theirs.directory, encoder=HashEncoder())
    check()


@pytest.fixture
def recorder() -> Iterator[tuple[str, type[Recorder]]]:
    """Give the address of a server that records requests, and the record."""
    with recording() as running:
        yield running


@pytest.fixture(params=tuple(PRODUCTS))
def server(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A server's key, and the address of a running one."""
    return request.param, request.getfixturevalue(request.param)


@pytest.fixture
def address(server: tuple[str, str]) -> Iterator[Callable[[], str]]:
    key, url = server
    with addresses(url, "remote", key) as new:
        yield new


@pytest.fixture
def make(address: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make an empty index on the cluster; `vectors` "none" leaves out the encoder."""
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")

    def made(vectors: str = "flat", **options: Any) -> Engine:
        where = address()
        building.create(where, encoder="none" if vectors == "none" else "hash", vectors=vectors, **options)
        return Engine(Path(where), encoder=HashEncoder())

    return made
