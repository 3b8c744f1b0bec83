"""BM25 and its rivals on the same documents and analyser: queries and indexed documents per CPU-second.

`python -m benchmarks.elastic [--work FOLDER] [--sizes 89000,740000] [--without elastic]` →
benchmarks/results/elastic.json. Target: our BM25 answers at least .9 times as many queries per CPU-second as the
better of bm25s and tantivy, at each size.

Documents are sentences of the statements2articles articles (there are 737,784), queries the test statements,
k = 10. All systems get the terms of `indexes.text.analysis` (Snowball stems; stop words stay in the documents and are
removed from the queries): tantivy through the same analyser, bm25s and Elasticsearch as lists of terms.
CPU seconds are those of all threads; for Elasticsearch, those of the server process (from /proc) and of the client are
added, and also recorded separately. In each round the systems take turns; the fastest round counts. The answers are
compared too.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster import running
from benchmarks.support import direct
from benchmarks.support.common import record, recorded, shared_data
from benchmarks.support.harness import WORK, Arguments, Commas, benchmark
from benchmarks.support.passages import SEED, statements
from benchmarks.support.service import cpu_seconds
from indexes.cluster.beside import ServerText
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.rows import Rows
from indexes.store.records import Manifest
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from tests import elastic_server

K, ROUNDS, BATCH = 10, 3, 1000
HEAP = (
    "-Xms1g -Xmx1g -XX:-AlwaysPreTouch"  # a server as users run it: compiled in full, with room for this size
)
SINGLE = 300  # queries run one by one
Answers = list[list[int]]
Search = Callable[[Sequence[str]], Answers]


def sentences(size: int) -> list[str]:
    source = shared_data() / "statements2articles" / "corpus.jsonl.gz"
    found = [
        sentence
        for _, text, _ in direct.read(source)
        for sentence in re.split(r"(?<=[.!?])\s+", text)
        if sentence
    ]
    if size >= len(found):
        return found
    picked = np.sort(np.random.default_rng(SEED).choice(len(found), size, replace=False))
    return [found[i] for i in picked]


class OfIndex:
    """A text index of this project."""

    def __init__(self, index: Bm25Index | ServerText) -> None:
        self._index = index

    def build(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            self._index.add([f"d{i}" for i in range(start, start + len(part))], part)
        self._index.commit()

    def search(self, queries: Sequence[str]) -> Answers:
        rows, _ = self._index.search_rows(queries, K)
        return [[r for r in row if r >= 0] for row in rows.tolist()]


class Tantivy:
    """tantivy, called directly."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tantivy"

    def build(self, texts: Sequence[str]) -> None:
        self._text = direct.filled_tantivy(self._folder, texts)

    def search(self, queries: Sequence[str]) -> Answers:
        return [list(rows) for rows, _ in self._text.rows(queries, K)]


class Bm25s:
    """bm25s over lists of terms, with numpy or numba."""

    def __init__(self, folder: Path, backend: str) -> None:
        import bm25s

        self._analysis = Analysis("english")
        self._index = bm25s.BM25(k1=1.2, b=0.75, backend=backend)

    def build(self, texts: Sequence[str]) -> None:
        analyze = self._analysis.terms
        self._index.index([analyze(self._analysis.prepare(t)) for t in texts], show_progress=False)

    def search(self, queries: Sequence[str]) -> Answers:
        terms = [list(self._analysis.query_terms(q).elements()) for q in queries]
        rows, scores = self._index.retrieve(terms, k=K, show_progress=False, n_threads=0)
        return [
            [int(r) for r, s in zip(*one, strict=True) if s > 0] for one in zip(rows, scores, strict=True)
        ]


class Clock:
    """CPU seconds of this process, and of a server next to it."""

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid

    def server(self) -> float:
        return 0.0 if self._pid is None else cpu_seconds(self._pid)

    def time(self, run: Callable[[], object]) -> tuple[float, float]:
        """Return the CPU seconds that a call takes in this process and on the server."""
        client, there = time.process_time(), self.server()
        run()
        return time.process_time() - client, self.server() - there


def rivals(size: int, folder: Path, node: elastic_server.Node | None) -> Iterator[tuple[str, Any, Clock]]:
    yield "ours", OfIndex(Bm25Index("english", folder / "ours")), Clock()
    yield "tantivy", Tantivy(folder), Clock()
    # This system scores every document for every query: 10 ms per query at 89,000 documents.
    if size <= 100_000:
        yield "bm25s, numpy", Bm25s(folder, "numpy"), Clock()
    yield "bm25s, numba", Bm25s(folder, "numba"), Clock()
    if node is not None:
        store = ClusterIndex(ElasticSettings((node.url,), new_name("benchmark")), timeout=600)
        store.create()  # the node ends with the run
        yield "elasticsearch", OfIndex(ServerText(Manifest(), Rows(), store)), Clock(node.pid)


def measure(size: int, queries: list[str], folder: Path, node: elastic_server.Node | None) -> dict[str, Any]:
    texts = sentences(size)
    sides = {name: (side, clock) for name, side, clock in rivals(size, folder, node)}
    found: dict[str, Any] = {}
    for name, (side, clock) in sides.items():
        client, server = clock.time(lambda side=side: side.build(texts))  # type: ignore[misc]  # bound at once
        found[name] = {"documents_per_cpu_s": round(len(texts) / (client + server))}
        print(size, name, found[name], flush=True)
    # this also warms up all systems
    answers = {name: side.search(queries) for name, (side, _) in sides.items()}
    least = {name: {"batch": (np.inf, 0.0), "single": (np.inf, 0.0)} for name in sides}
    for number in range(ROUNDS):
        for name in list(sides)[:: (1, -1)[number % 2]]:
            side, clock = sides[name]
            cost = {
                "batch": [t / len(queries) for t in clock.time(lambda side=side: side.search(queries))],  # type: ignore[misc]  # bound at once
                "single": [
                    t / SINGLE
                    for t in clock.time(lambda side=side: [side.search([q]) for q in queries[:SINGLE]])  # type: ignore[misc]  # bound at once
                ],
            }
            for kind, (client, server) in cost.items():
                least[name][kind] = min(least[name][kind], (client + server, server))
    for name, kinds in least.items():
        for kind, (total, server) in kinds.items():
            found[name][f"{kind}_queries_per_cpu_s"] = round(1 / total, 1)
            if server:
                found[name][f"{kind}_server_ms_a_query"] = round(1000 * server, 3)
        found[name]["same_ten_as_ours"] = _agreement(answers[name], answers["ours"])
    return {"documents": len(texts), "queries": len(queries), "rivals": found}


def _agreement(mine: Answers, theirs: Answers) -> float:
    return round(
        float(np.mean([len({*a} & {*b}) / max(len(b), 1) for a, b in zip(mine, theirs, strict=True)])), 4
    )


@benchmark(
    work=WORK,
    sizes=Commas((89_000, 740_000)),
    without=("", "'elastic' leaves the server out, with its figures as they were"),
)
def measured(options: Arguments) -> None:
    queries = statements()
    for size in options.sizes:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.work)))
            node = None
            if options.without != "elastic":
                node = stack.enter_context(running(HEAP, in_memory=True))
            found = measure(size, queries, folder, node)
            data = recorded("elastic")
            before = data.get(str(size), {}).get("rivals", {})
            if node is None and "elasticsearch" in before:  # keep the figures of an earlier run
                found["rivals"]["elasticsearch"] = before["elasticsearch"]
            record("elastic", data | {str(size): found}, SEED)  # sizes may be measured in separate runs
