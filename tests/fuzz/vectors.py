"""External vectors: FAISS files of supported and unsupported kinds, and numpy files."""

import functools
import io
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.engine import Run, Target

ROWS, DIM = 2600, 8  # as many as FAISS needs for training
FACTORIES = (
    "Flat", "IDMap,Flat", "IDMap2,HNSW4,Flat", "HNSW4,SQ8", "IVF4,Flat", "IVF4,SQ4", "IVF4,PQ4x4", "PQ4x6", "SQfp16",
    "PCA4,Flat", "L2norm,Flat", "RR8,IVF4,PQ4x4", "PQ4x4fs", "IVF4,PQ4x4fs", "LSH",
)  # fmt: skip


@functools.cache
def indexes() -> dict[str, bytes]:
    """Return the file of an index of each kind by name; the last has a graph without vectors."""
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(1)  # more threads would busy-wait
    vectors = np.random.default_rng(0).normal(size=(ROWS, DIM)).astype(np.float32)
    files = dict[str, bytes]()
    for name in FACTORIES:
        index = faiss.index_factory(DIM, name)
        index.train(vectors)
        if name.startswith("IDMap"):
            index.add_with_ids(vectors[:40], np.arange(40) * 3)
        else:
            index.add(vectors[:40])
        files[name] = faiss.serialize_index(index).tobytes()
    graph = faiss.IndexHNSWFlat(DIM, 4)
    graph.add(vectors[:40])
    files["HNSW without vectors"] = faiss.serialize_index(graph, faiss.IO_FLAG_SKIP_STORAGE).tobytes()
    return files


def read(work: Path) -> Run:
    """Read each case from a file."""
    from linker.corpora.vectors import read_matrix

    path = work / "vectors"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        assert read_matrix(path).size

    return run


def from_faiss(work: Path) -> tuple[Sequence[bytes], Run]:
    return list(indexes().values()), read(work)


def from_numpy(work: Path) -> tuple[Sequence[bytes], Run]:
    import numpy as np

    seeds = []
    for dtype, order in (("<f4", "C"), (">f8", "F"), ("<f2", "C"), ("<i8", "C")):
        file = io.BytesIO()
        np.save(file, np.asarray(np.arange(1, 41).reshape(5, 8), dtype=dtype, order=order))  # type: ignore[call-overload]
        seeds.append(file.getvalue())
    return seeds, read(work)


TARGETS = [
    Target("faiss-vectors", from_faiss, (b"IxF2", b"IwFl", b"IHNf", b"IxMp", b"null"), cases=1200, preload=("faiss",)),
    Target("npy-vectors", from_numpy, (b"(-1, ", b"'shape': ", b"'<f4'", b"'|O'", b"True"), cases=600),
]  # fmt: skip
