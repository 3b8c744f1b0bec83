"""Is the BM25 ranking of an index on a cluster identical to a directory's, and at what cost?

`python -m benchmarks.cluster_ranking [--work FOLDER] [--data NAME …] [--servers NAME …] [--queries N]` →
benchmarks/results/cluster_ranking.json. The same documents are indexed in a directory, next to a directory and only
on a dedicated node (512 MiB of heap). A top ten is identical if its ids and their order are; `lucene` is the server's
own ranking, with its lengths of four significant bits, and `rescored` the ranking that a search returns; `fields` is
BM25F over title (weight 2) and text, and `ranker` the order of the ranker that comes with linker. Milliseconds
are per query, one query at a time after all have been run once: wall-clock time (the median; other load lengthens it),
and the CPU time of client and server. `batch` runs all at once. `cold` is the first run, which also reads the terms'
frequencies.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster import Clock, running
from benchmarks.support import rank_data
from benchmarks.support.common import recorded, shared_data
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from indexes.address import Address
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.retrievers import ClusterText, text_query
from indexes.cluster.rows import ByRow, ByStamp
from indexes.rows import Rows
from indexes.text.parameters import Bm25Parameters, Field
from linker.engine import Engine, building
from linker.engine.options import BuildOptions
from linker.scoring.ranking import pooled
from tests import elastic_server, opensearch_server

K, HEAP = 10, "-Xms512m -Xmx512m"
RANKED = 100  # queries with a ranker, which reads the candidates' texts
FIELDS = BuildOptions(bm25=Bm25Parameters(fields=(Field("title", 2.0), Field("text"))))
SERVERS = {"elastic": elastic_server.ELASTICSEARCH, "opensearch": opensearch_server.OPENSEARCH}
Ask = Callable[[Sequence[str]], list[tuple[str, ...]]]


class Lucene(ClusterText):
    """The server's own ranking."""

    def ask(self, texts: Sequence[str], rows: Rows) -> list[tuple[str, ...]]:
        """Return the ids of the top ten of each query."""
        bodies = [text_query(self._analysis.query_terms(text), Bm25Parameters(), []) for text in texts]
        return [tuple(hits.ids) for hits in rows.hits(*self._top(bodies, K))]


def costs(
    ask: Ask, texts: Sequence[str], server: int | None
) -> tuple[list[tuple[str, ...]], dict[str, float]]:
    """Return the top tens, and the cost of a query in milliseconds."""
    found: dict[str, float] = {}

    def cpu(name: str, run: Callable[[], list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
        clock = Clock(server)
        answers = run()
        spent = clock.read()
        for side in ("client", "server"):
            found[f"{name}_{side}_ms"] = round(1000 * spent[f"{side}_cpu_s"] / len(texts), 2)
        return answers

    answers = cpu("cold", lambda: ask(texts))
    cpu("batch", lambda: ask(texts))
    seconds = []

    def single() -> list[tuple[str, ...]]:
        for text in texts:
            start = time.perf_counter()
            ask([text])
            seconds.append(time.perf_counter() - start)
        return []

    cpu("single", single)
    found["single_p50_ms"] = round(1000 * float(np.median(seconds)), 2)
    return answers, found


def searching(engine: Engine) -> Ask:
    """Return the search function that users call."""
    return lambda texts: [tuple(hits.ids) for hits in engine.search(list(texts), K, mode="bm25").hits]


def ranked(engine: Engine) -> Ask:
    """Return the search with the ranker that comes with linker."""
    ranker = pooled.load()
    return lambda texts: [tuple(hits.ids) for hits in engine.search(list(texts), K, reranker=ranker).hits]


def own(engine: Engine) -> Ask:
    """Return the server's own ranking of an index."""
    collection, address = engine.collection, Address.of(engine.directory)
    rows = collection.rows
    stored = ElasticSettings.from_json(collection.manifest.elastic)
    index = ClusterIndex(ElasticSettings.of(address) if address else stored)
    numbers = ByStamp(lambda ids, _: rows.find(ids), index.about) if address else ByRow(rows)
    lucene = Lucene(index, numbers, collection.manifest.analysis, collection.manifest.bm25)
    return lambda texts: lucene.ask(texts, rows)


ASKED = {"lucene": own, "rescored": searching, "ranker": ranked}


@contextlib.contextmanager
def local(corpus: Path, folder: Path, options: BuildOptions) -> Iterator[Engine]:
    """Build an index in a directory, and open it."""
    building.build([corpus], folder, options)
    with Engine.open(folder) as engine:
        yield engine


def compared(name: str, server: str, queries: int, work: Path) -> dict[str, Any]:
    """Return how far the rankings on a server agree with a directory's, and what they cost."""
    corpus = shared_data() / name / "corpus.jsonl.gz"
    texts = [query.text for query in rank_data.links(name)["test"].queries][:queries]
    folder, run = work / f"{name}-{new_name('ranking')}", new_name("ranking")
    expected: dict[str, list[tuple[str, ...]]] = {}
    results: dict[str, Any] = {"data": name, "queries": len(texts)}
    with local(corpus, folder, BuildOptions()) as engine:
        expected["rescored"], results["directory"] = costs(searching(engine), texts, None)
        expected["ranker"], results["directory with a ranker"] = costs(ranked(engine), texts[:RANKED], None)
    with local(corpus, folder.with_name(f"{folder.name}-fields"), FIELDS) as engine:
        expected["fields"], results["directory with fields"] = costs(searching(engine), texts, None)
    expected["lucene"] = expected["rescored"]
    with running(HEAP, SERVERS[server]) as node:
        results["server"] = f"{SERVERS[server].name} {node.get('/')['version']['number']}"
        places = {"alone": (Path(f"{server}+{node.url}/{run}"), BuildOptions(), ASKED)}
        places["alone with fields"] = (Path(f"{server}+{node.url}/{run}-f"), FIELDS, {"fields": searching})
        if server == "elastic":  # only Elasticsearch can hold an index next to a directory
            settings = ElasticSettings((node.url,), f"{run}-beside")
            next_to = folder.with_name(f"{folder.name}-beside")
            places["beside"] = (next_to, BuildOptions(elastic=settings), ASKED)
        for place, (out, options, rankings) in places.items():
            building.build([corpus], out, options)
            with Engine.open(out) as engine:
                results["documents"] = len(engine)
                for ranking, ranker_of in rankings.items():
                    part = texts[: len(expected[ranking])]
                    answers, cost = costs(ranker_of(engine), part, node.pid)
                    same = sum(a == b for a, b in zip(answers, expected[ranking], strict=True))
                    results[f"{place}, {ranking}"] = {"identical": same, "queries": len(part), **cost}
                    print(name, place, ranking, results[f"{place}, {ranking}"], flush=True)
    return results


@benchmark(work=WORK, data=["tweets2claims", "statements2articles"], servers=[*SERVERS], queries=500)
def measured(options: Arguments) -> Results:
    found = [
        compared(name, server, options.queries, options.work)
        for server in options.servers
        for name in options.data
    ]
    # the other rows stay as an earlier run recorded them
    before = recorded("cluster_ranking").get("rows", ())
    rows = {(row["data"], row["server"].split()[0]): row for row in (*before, *found)}
    return {"k": K, "heap": HEAP, "rows": list(rows.values())}
