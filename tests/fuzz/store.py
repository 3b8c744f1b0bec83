"""An untrusted index: each kind of file altered, with fixed checksums, so that only the content reveals it."""

import dataclasses
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import xxhash

from indexes.collection import Collection
from indexes.disk.writing import record_of
from indexes.interface import Filter
from indexes.store import manifest as manifests
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.hnsw import Hnsw
from indexes.vectors.kinds import CandidateGenerator
from indexes.vectors.pq import IvfPq, PqScan
from indexes.writer import Writer
from tests.fuzz.engine import Run, Target
from tests.fuzz.files import nearest
from tests.fuzz.graphs import crafted
from tests.golden.make_index import documents
from tests.helpers import ROOT, HashEncoder

GOLDEN = max((ROOT / "tests" / "golden").glob("index-v?"))
ENCODER = HashEncoder(8)
TEXTS = ("banel banras", "Boxkämpfer jagen")
ROWS, DIM = 60, 8


def use(folder: Path) -> None:
    """Open an index, search it in every way and read every document."""
    collection = Collection.open(folder)
    for mode, where in itertools.product(("bm25", "dense", "hybrid"), (None, Filter.parse(["group=1"]))):
        found = collection.hybrid.search(TEXTS, 5, embed=ENCODER.encode, mode=mode, where=where)  # type: ignore[arg-type] # a mode's name
        for hits in found.hits:
            assert all(id_ in collection.rows for id_ in hits.ids), "a hit that is not in the index"
            assert len({*hits.ids}) == len(hits.ids) == len(hits.scores) <= 5, (
                "a hit without a score, or twice"
            )
            assert np.isfinite(hits.scores).all(), "a score that is no number"
    for id_, row in zip(collection.rows.ids, range(collection.documents.rows), strict=True):
        assert collection.documents[row].id == id_, "a document under another's id"
    assert not (set(collection.rows.dead.tolist()) - set(range(collection.documents.rows)))


def use_same(folder: Path) -> None:
    """Use an index whose manifest was altered; its documents must be the same."""
    use(folder)
    stored = Collection.open(folder).documents
    assert [stored[row] for row in range(stored.rows)] == documents(), "other documents"


def change(folder: Path) -> None:
    """Open an index for writing, remove a document, and compact it."""
    with Writer.open(folder) as writer:
        writer.remove(["d3"])
        writer.commit()
    with Writer.open(folder) as writer:
        writer.compact()


def sealed(data: bytes) -> bytes:
    """Return a manifest with the checksum of the text after its first comma."""
    body = data.partition(b",")[2]
    return b'{"xxh3": "%s",' % xxhash.xxh3_128_hexdigest(body).encode() + body


def manifest_target(name: str, do: Callable[[Path], None], cases: int) -> Target:
    def prepare(work: Path) -> tuple[Sequence[bytes], Run]:
        def run(data: bytes) -> None:
            with _copy(work) as copy:
                (copy / manifests.NAME).write_bytes(sealed(data))
                do(copy)

        return [(GOLDEN / manifests.NAME).read_bytes()], run

    return Target(
        name, prepare, (b'"../', b'"segments/', b'"flat"', b'"pq"', b'"elastic-flat"', b'"none"'), cases=cases
    )


def part_target(
    name: str,
    pattern: str,
    do: Callable[[Path], None] = use,
    cases: int = 400,
    compiled: bool = False,
    offsets: bool = False,
) -> Target:
    """Alter a file matching this pattern; at least one must exist. `offsets`: those of the documents are updated."""

    def prepare(work: Path) -> tuple[Sequence[bytes], Run]:
        names = sorted(p.relative_to(GOLDEN).as_posix() for p in GOLDEN.glob(pattern))
        originals = [(GOLDEN / place).read_bytes() for place in names]

        def run(data: bytes) -> None:
            place = names[nearest(data, originals)]
            with _copy(work) as copy:
                replace(copy, place, data)
                if place.endswith("documents.jsonl") and offsets:
                    ends = np.cumsum([0, *map(len, data.splitlines(keepends=True))])
                    replace(
                        copy, place.replace("documents.jsonl", "offsets.i64"), ends.astype("<i8").tobytes()
                    )
                do(copy)

        return originals, run

    return Target(name, prepare, (b"d3", b'"metadata"', b'"id"', b"\n"), compiled, cases)


class _copy:  # a context manager, named like a function
    """A copy of the golden index that exists for one case."""

    def __init__(self, work: Path) -> None:
        self._path = work / "index"

    def __enter__(self) -> Path:
        shutil.copytree(GOLDEN, self._path)
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path)


def replace(index: Path, name: str, data: bytes) -> None:
    """Replace a file of an index and its record; posting lists are named by their checksum."""
    manifest = manifests.load(index)
    (index / name).unlink()
    new = name
    if name.endswith(".postings"):
        new = f"{name.rpartition('/')[0]}/{xxhash.xxh3_128_hexdigest(data)}.postings"
    (index / new).write_bytes(data)
    files = {n: record for n, record in manifest.files.items() if n != name} | {new: record_of(index / new)}
    (index / manifests.NAME).write_bytes(manifests.dump(dataclasses.replace(manifest, files=files)))


def graph_target(
    kind: type[Hnsw] | type[IvfPq] | type[PqScan], cases: int, *, structure: bool = False
) -> Target:
    """Read a FAISS structure, search it with and without a mask, and extend it; `structure`: also crafted ones."""

    def prepare(work: Path) -> tuple[Sequence[bytes], Run]:
        faiss = load_faiss()
        faiss.omp_set_num_threads(1)
        vectors = _vectors()
        queries, mask = vectors[::20].copy(), np.arange(ROWS) % 3 > 0
        path = work / "x.faiss"

        def run(data: bytes) -> None:
            path.write_bytes(data)
            flat = faiss.IndexFlatIP(DIM)
            flat.add(vectors)
            generator: CandidateGenerator = kind()
            known = generator.load(path, flat)
            assert 0 <= known <= ROWS
            for allowed in (None, mask[:known]):
                if allowed is None or allowed.any():
                    rows = generator.generate(queries, 10, allowed)
                    assert ((rows >= -1) & (rows < max(known, 1))).all(), "rows outside the index"
            generator.extend(flat, vectors)

        sound = list(_graphs(kind, vectors, path))
        return [*sound, *(crafted(sound[0]) if structure else ())], run

    return Target("graph-structure" if structure else f"graph-{kind.__name__.lower()}", prepare, cases=cases)


def _vectors() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = np.random.default_rng(5).standard_normal((ROWS, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _graphs(
    kind: type[Hnsw] | type[IvfPq] | type[PqScan],
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    path: Path,
) -> Iterator[bytes]:
    """Yield structures over all rows, and over a subset."""
    for rows in (ROWS, ROWS // 2):
        flat = load_faiss().IndexFlatIP(DIM)
        flat.add(vectors[:rows])
        path.unlink(missing_ok=True)
        structure = kind()
        structure.extend(flat, vectors[:rows])
        structure.save(path)
        yield path.read_bytes()


TARGETS = [
    manifest_target("manifest", use_same, 2400),
    manifest_target("manifest-write", change, 150),
    part_target("documents", "segments/*/documents.jsonl"),
    part_target("records", "segments/*/documents.jsonl", offsets=True),
    part_target("offsets", "segments/*/offsets.i64"),
    part_target("ids", "segments/*/ids.txt"),
    part_target("vectors", "segments/*/vectors.f32", compiled=True),
    part_target("deleted", "deleted/*"),
    part_target("graph", "graph/*"),
    part_target("text", "text/*/*", compiled=True),
    part_target("documents-write", "segments/*/documents.jsonl", change, cases=100),
    part_target("offsets-write", "segments/*/offsets.i64", change, cases=100),
    graph_target(Hnsw, 800),
    graph_target(Hnsw, 250, structure=True),
    graph_target(PqScan, 400),
    graph_target(IvfPq, 400),
]
