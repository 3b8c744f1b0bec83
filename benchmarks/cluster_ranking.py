"""Is the BM25 ranking of an index on a cluster identical to a directory's, and at what cost?

`python -m benchmarks.cluster_ranking [--work FOLDER] [--data NAME …] [--servers NAME …] [--queries N] [--size N]` →
benchmarks/results/cluster_ranking.json. The same documents are indexed in a directory, next to a directory and only
on a dedicated node (512 MiB of heap). A top ten is identical if its ids and their order are; `lucene` is the server's
own ranking, with its lengths of four significant bits, and `rescored` the ranking that a search returns; `fields` is
BM25F over title (weight 2) and text, and `ranker` the order of the ranker that comes with linker. `phrases` quotes the
first two words of each query. Milliseconds are per query, one query at a time after all have been run once: wall-clock
time (the median; other load lengthens it), and the CPU time of client and server. `batch` runs all at once. `cold` is
the first run, which also reads the terms' frequencies.

`--data many` are `size` short texts of many_documents.py, on a node of 2 GiB of heap. There, `calibrated` also compares
P(link), learned from changed copies of HELD of the documents, to six digits, and `joined` is a copy by `index join`.
`--data "many with vectors"` is what `index tune --recall` measures and chooses for vectors of DIM dimensions.
"""

import contextlib
import functools
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.cluster import Clock, running
from benchmarks.support import many_documents, rank_data
from benchmarks.support.common import recorded, shared_data
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.passages import statements
from indexes.address import Address
from indexes.arrays import normalised
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.retrievers import ClusterText, text_query
from indexes.cluster.rows import ByRow, ByStamp
from indexes.rows import Rows
from indexes.sharded import join
from indexes.text.parameters import Bm25Parameters, Field
from linker.corpora import Query
from linker.engine import Engine, building
from linker.engine.options import BuildOptions
from linker.scoring.probability import folder as calibrations
from linker.scoring.ranking import pooled
from tests import elastic_server, opensearch_server

K, HEAP = 10, "-Xms512m -Xmx512m"
RANKED = 100  # queries where a search reads more than terms
MANY, TUNED, MANY_HEAP = "many", "many with vectors", "-Xms2g -Xmx2g"
DIM, HELD, TITLE, RECALL = 64, 200, 3, 0.95
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


def quoting(engine: Engine) -> Ask:
    """Return the search for documents with each query's first two words in sequence."""

    def ask(texts: Sequence[str]) -> list[tuple[str, ...]]:
        words = [text.replace('"', " ").split() for text in texts]
        quoted = [f'"{" ".join(each[:2])}" {" ".join(each[2:])}' for each in words]
        return [tuple(hits.ids) for hits in engine.search(quoted, K, mode="bm25", phrases=True).hits]

    return ask


def calibrated(engine: Engine) -> Ask:
    """Calibrate an index and return a search that names each document with its P(link)."""
    rng = np.random.default_rng(0)
    documents = [*itertools.islice(engine.documents(), HELD)]
    pool = " ".join(document.full_text for document in documents).split()
    queries = [
        Query(document.id, many_documents.changed(document.full_text.split(), pool, rng))
        for document in documents
    ]
    with tempfile.TemporaryDirectory() as name:
        calibration = engine.calibrate(queries, {query.id: {query.id: 1.0} for query in queries})
        calibrations.save(calibration, Path(name) / "calibration")
        engine.store_calibration(Path(name) / "calibration")

    def ask(texts: Sequence[str]) -> list[tuple[str, ...]]:
        answer = engine.search(list(texts), K, mode="bm25")
        assert answer.probabilities is not None
        pairs = zip(answer.hits, answer.probabilities, strict=True)
        return [
            tuple(f"{id_} {p:.6f}" for id_, p in zip(hits.ids, of_query.tolist(), strict=True))
            for hits, of_query in pairs
        ]

    return ask


def ranked(engine: Engine) -> Ask:
    """Return the search with the ranker that comes with linker."""
    ranker = pooled.load()
    return lambda texts: [tuple(hits.ids) for hits in engine.search(list(texts), K, reranker=ranker).hits]


def own(engine: Engine) -> Ask:
    """Return the server's own ranking of an index."""
    collection, address = engine.collection, Address.of(engine.directory)
    rows = collection.ranking().rows if address else collection.rows
    stored = ElasticSettings.from_json(collection.manifest.elastic)
    index = ClusterIndex(ElasticSettings.of(address) if address else stored)
    numbers = ByStamp(lambda ids, _: rows.find(ids), index.about) if address else ByRow(rows)
    lucene = Lucene(index, numbers, collection.manifest.analysis, collection.manifest.bm25)
    return lambda texts: lucene.ask(texts, rows)


ASKED = {"lucene": own, "rescored": searching, "ranker": ranked, "phrases": quoting}
FEWER = ("ranker", "calibrated", "phrases")  # with RANKED queries


def many(work: Path, size: int) -> tuple[Path, Path, Path]:
    """Return files of `size` short texts with titles, of their vectors, and of their ids; write them if missing."""
    corpus = work / f"many-{size}.jsonl"
    matrix, ids = corpus.with_suffix(".npy"), corpus.with_suffix(".ids")
    if not corpus.exists():
        texts, vectors = many_documents.prepare(work, size // many_documents.REAL, statements())
        lines = texts.read_text(encoding="utf-8").split("\n")
        rows = normalised(np.ascontiguousarray(np.load(vectors)[:, :DIM]))
        shard = many_documents.Shard(0, 1, size, lines, rows)
        plain, *others = many_documents.write(shard, size, DIM, work)
        for file, target in zip(others, (matrix, ids), strict=True):
            file.rename(target)
        with plain.open("rb") as untitled, corpus.open("wb") as out:
            for record in map(orjson.loads, untitled):
                words = record.pop("text").split(" ")
                parts = {"title": " ".join(words[:TITLE]), "text": " ".join(words[TITLE:])}
                out.write(orjson.dumps(record | parts) + b"\n")
    return corpus, matrix, ids


@contextlib.contextmanager
def local(corpus: Path, folder: Path, options: BuildOptions) -> Iterator[Engine]:
    """Build an index in a directory, and open it."""
    building.build([corpus], folder, options)
    with Engine.open(folder) as engine:
        yield engine


def compared(name: str, server: str, options: Arguments) -> dict[str, Any]:
    """Return how far the rankings on a server agree with a directory's, and what they cost."""
    work, heap, requests = options.work, HEAP, dict(ASKED)
    if name == MANY:
        corpus, texts = many(work, options.size)[0], statements()
        heap, requests["calibrated"] = MANY_HEAP, calibrated
    else:
        corpus = shared_data() / name / "corpus.jsonl.gz"
        texts = [query.text for query in rank_data.links(name)["test"].queries]
    texts = texts[: options.queries]
    folder, run = work / f"{name}-{new_name('ranking')}", new_name("ranking")
    expected: dict[str, list[tuple[str, ...]]] = {}
    results: dict[str, Any] = {"data": name, "queries": len(texts)}

    def compare(location: str, ranking: str, ask: Ask, server: int | None) -> None:
        part = texts[:RANKED] if ranking in FEWER else texts
        answers, cost = costs(ask, part, server)
        same = sum(a == b for a, b in zip(answers, expected.setdefault(ranking, answers), strict=True))
        results[f"{location}, {ranking}"] = {"identical": same, "queries": len(part), **cost}
        print(name, location, ranking, results[f"{location}, {ranking}"], flush=True)

    with local(corpus, folder, BuildOptions()) as engine:
        for ranking, ask_of in requests.items():
            if ranking != "lucene":
                compare("directory", ranking, ask_of(engine), None)
    with local(corpus, folder.with_name(f"{folder.name}-fields"), FIELDS) as engine:
        compare("directory with fields", "fields", searching(engine), None)
    expected["lucene"] = expected["rescored"]
    with running(heap, SERVERS[server]) as node:
        results["server"] = f"{SERVERS[server].name} {node.get('/')['version']['number']}"
        build, fields = functools.partial(building.build, [corpus]), {"fields": searching}
        alone, with_fields, joined = (Path(f"{server}+{node.url}/{run}{end}") for end in ("", "-f", "-j"))
        places: dict[str, tuple[Path, Callable[[Path], object], dict[str, Any]]] = {
            "alone": (alone, build, requests),
            "alone with fields": (with_fields, lambda out: build(out, FIELDS), fields),
        }
        if name == MANY:
            places["joined"] = (joined, lambda out: join(out, [alone]), {"rescored": searching})
        elif server == "elastic":  # only Elasticsearch can hold an index next to a directory
            settings = ElasticSettings((node.url,), f"{run}-beside")
            next_to, stored = folder.with_name(f"{folder.name}-beside"), BuildOptions(elastic=settings)
            places["beside"] = (next_to, lambda out: build(out, stored), requests)
        with contextlib.suppress(KeyboardInterrupt):  # what has been measured is recorded
            for location, (out, make, rankings) in places.items():
                clock = Clock(node.pid)
                make(out)
                print(name, location, clock.read(), flush=True)
                with Engine.open(out) as engine:
                    results["documents"] = len(engine)
                    for ranking, ask_of in rankings.items():
                        compare(location, ranking, ask_of(engine), node.pid)
    return results


def tuned(server: str, options: Arguments) -> dict[str, Any]:
    """Return what tuning chooses for approximate vector search on a server, and the seconds that it takes."""
    corpus, matrix, ids = many(options.work, options.size)
    with running(MANY_HEAP, SERVERS[server]) as node:
        out, clock = Path(f"{server}+{node.url}/{new_name('tuned')}"), Clock(node.pid)
        building.build([corpus], out, BuildOptions(vectors="hnsw", vectors_file=matrix, ids_file=ids))
        row = {"data": TUNED, "server": f"{SERVERS[server].name} {node.get('/')['version']['number']}"}
        written, start = clock.read(), time.perf_counter()
        with Engine.open(out) as engine:
            tuning = engine.tune_recall(RECALL, K)
            found = {"documents": len(engine), "s": round(time.perf_counter() - start, 1)}
    return row | found | {"written": written, **tuning.to_json()}


@benchmark(
    work=WORK,
    data=["tweets2claims", "statements2articles"],
    servers=[*SERVERS],
    queries=500,
    size=(1_100_000, "texts of --data many"),
)
def measured(options: Arguments) -> Results:
    found = [
        tuned(server, options) if name == TUNED else compared(name, server, options)
        for server in options.servers
        for name in options.data
    ]
    # the other rows stay as an earlier run recorded them
    before = recorded("cluster_ranking").get("rows", ())
    rows = {(row["data"], row["server"].split()[0]): row for row in (*before, *found)}
    return {"k": K, "heap": HEAP, "rows": list(rows.values())}
