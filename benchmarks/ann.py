"""How good are approximate indexes? Build, memory, recall and latency of ours, hnswlib and usearch.

`python -m benchmarks.ann --work FOLDER [--rows N] [--only NAME,…] [--data real]` → benchmarks/results/ann.json. Real
vectors (real_vectors.py: the first N of a million), 500 test statements as queries, top ten; one thread; each kind
runs in its own process. All graphs have 32 links per node (64 on the bottom level) and a construction width of 100.
`sizes` are bytes per row of the saved structure apart from the float32 vectors (which our kinds share with exact
search; hnswlib and usearch store them again, so they are subtracted), at 10,000 rows. For each target recall, the
cheapest setting that reaches it is shown, in CPU ms per single query. Random vectors are included as a warning: they
have no structure to find, so settings tuned on them are meaningless for text. Cases from earlier runs stay in the file
until they are rerun.
"""

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.support import real_vectors
from benchmarks.support.common import fresh, record, recorded
from benchmarks.support.harness import KEPT, Arguments, Commas, benchmark
from benchmarks.support.passages import SEED
from indexes.interface import Matrix, RowArray
from indexes.vectors.certified import ByteScan
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.kinds import GENERATORS
from indexes.vectors.recall import SearchCost, choose, measure

K, QUERIES, TIMED = 10, 500, 100
LINKS, CONSTRUCTION = 32, 100
WIDTHS = (16, 32, 64, 128, 256, 512)
TARGETS = (0.9, 0.95, 0.99)
Ask = Callable[[Matrix, int], RowArray]
Save = Callable[[str], Any]


def hnswlib_index(vectors: Matrix) -> tuple[Ask, Save]:
    import hnswlib

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(len(vectors), M=LINKS, ef_construction=CONSTRUCTION)
    index.set_num_threads(1)
    index.add_items(vectors)

    def ask(queries: Matrix, width: int) -> RowArray:
        index.set_ef(max(K, width))
        return np.asarray(index.knn_query(queries, K)[0], dtype=np.int64)

    return ask, index.save_index


def usearch_index(vectors: Matrix) -> tuple[Ask, Save]:
    from usearch.index import Index

    index = Index(
        ndim=vectors.shape[1], metric="ip", dtype="f32", connectivity=LINKS, expansion_add=CONSTRUCTION
    )
    # CPU time is measured, so two threads only finish sooner
    index.add(np.arange(len(vectors)), vectors, threads=2)

    def ask(queries: Matrix, width: int) -> RowArray:
        index.expansion_search = width
        keys = index.search(queries, K, threads=1).keys
        return np.asarray(keys, dtype=np.int64).reshape(len(queries), -1)

    return ask, index.save


PEERS = {"hnswlib": hnswlib_index, "usearch": usearch_index}


def peer(name: str, vectors: Matrix, queries: Matrix) -> dict[str, Any]:
    """Build a peer's graph and measure its curve."""
    truth = ByteScan().search(vectors, queries, K, None)[0]
    start = time.process_time()
    ask, _ = PEERS[name](vectors)
    found: dict[str, Any] = {"build_cpu_s": time.process_time() - start}
    points = []
    for width in WIDTHS:
        rows = ask(queries, width)
        share = float(np.mean([np.isin(t, f).mean() for t, f in zip(truth, rows, strict=True)]))
        start = time.process_time()
        for query in queries[:TIMED, None]:
            ask(query, width)
        points.append(SearchCost({"ef": width}, share, (time.process_time() - start) / TIMED * 1e3))
    return found | _summary(points)


def ours(kind: str, vectors: Matrix, queries: Matrix) -> dict[str, Any]:
    """Build one of our kinds and measure its curve."""
    index = FaissIndex(vectors.shape[1], kind)
    index.add([f"{i}" for i in range(len(vectors))], vectors)
    start = time.process_time()
    index.build()
    found: dict[str, Any] = {"build_cpu_s": time.process_time() - start}
    generator = index.generator
    assert generator is not None
    default = dict(generator.settings)
    curve = measure(index, queries, K)
    points = [p for p in curve.points if all(default[n] == v for n, v in p.settings.items())]
    return (
        found
        | _summary(curve.points)
        | {"exact_ms": curve.exact_ms, "default": [p.to_json() for p in points]}
    )


def _summary(points: Any) -> dict[str, Any]:
    chosen = {str(t): choose(points, t).to_json() for t in TARGETS if max(p.recall for p in points) >= t}
    return {"at_recall": chosen, "points": [p.to_json() for p in points]}


def sizes(path: Path, rows: int = 10_000) -> dict[str, float]:
    """Return each structure's bytes per row in addition to the vectors, measured on its saved file."""
    vectors, found = np.ascontiguousarray(np.load(path, mmap_mode="r")[:rows]), {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "saved"
        for kind in GENERATORS:
            index = FaissIndex(vectors.shape[1], kind, exact_below=1)
            index.add([f"{i}" for i in range(rows)], vectors)
            record = index.save_graph(Path(folder) / kind)
            assert record
            found[kind] = round(record.bytes / rows, 1)
        for name, build in PEERS.items():
            build(vectors)[1](str(file))
            found[name] = round(file.stat().st_size / rows - vectors.shape[1] * 4, 1)
    return found


def case(name: str, path: Path | None, rows: int) -> dict[str, Any]:
    """Measure one kind on real vectors, or on random vectors if there is no file."""
    load_faiss().omp_set_num_threads(1)
    if path is None:
        vectors, queries = real_vectors.random_vectors(rows, 1), real_vectors.random_vectors(QUERIES, 2)
    else:
        vectors = np.ascontiguousarray(np.load(path, mmap_mode="r")[:rows])
        queries = real_vectors.queries()[:QUERIES]
    found: dict[str, Any] = _rounded((ours if name in GENERATORS else peer)(name, vectors, queries))
    return found


def _rounded(value: Any) -> Any:
    """Round the numbers in a tree of dictionaries."""
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return round(value, 4) if isinstance(value, float) else value


@benchmark(
    work=KEPT,
    rows=(1_000_000, "vectors"),
    million=(1_000_000, "vectors in the file to draw from"),
    only=Commas([*GENERATORS, *PEERS]),
    data=Commas(("real", "random")),
    sizes=(False, "only the structures' sizes"),
)
def measured(options: Arguments) -> None:
    path = real_vectors.prepare(options.work, options.million)
    if options.sizes:
        record("ann", recorded("ann") | {"sizes": sizes(path)}, SEED)
        return
    for name, data in product(options.only, options.data):
        title = f"{name}, {options.rows:,} {data}"
        found = fresh(case, name, path if data == "real" else None, options.rows)
        print(title, {k: v for k, v in found.items() if k != "points"}, flush=True)
        record("ann", recorded("ann") | {title: found}, SEED)  # other kinds may be measured concurrently
