"""Open the vector index of a stored generation over its vectors and graph, and write it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from indexes.disk import faults
from indexes.disk.reading import REMEDY, give_back, mapping_of
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, Matrix
from indexes.kinds import AUTO, may_have_structure
from indexes.rows import Rows
from indexes.store import files as storage
from indexes.store.documents import DocumentStore
from indexes.store.records import Manifest
from indexes.vectors.certified import ExactScan
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.kinds import AUTO_EXACT

CHECKED = 1 << 22  # floats checked at a time: 16 MiB
MakeScan = Callable[[], ExactScan | None]


def check_unit(directory: Path, blocks: Sequence[Matrix], first: int = 0) -> None:
    """Raise DamagedError unless the vectors in `blocks` (float32 [n, dim]) from row `first` on have length 1 or 0."""
    for block in blocks:
        mapped, step = mapping_of(block), max(1, CHECKED // block.shape[1])
        for start in range(first, len(block), step):
            part = block[start : start + step]
            squares = np.einsum("ij,ij->i", part, part)
            # NaN compares false, so it counts as wrong.
            wrong = ~((np.abs(squares - 1) < 1e-2) | (squares == 0))
            if wrong.any():
                row = start + int(np.argmax(wrong))
                raise DamagedError(f"{directory}: the vector of row {row} does not have length 1: {REMEDY}")
            if mapped is not None:
                give_back(mapped)


def open_vectors(
    directory: Path,
    manifest: Manifest,
    rows: Rows,
    blocks: Sequence[Matrix],
    dim: int,
    scan: MakeScan | None = None,
    checked: int = 0,
) -> FaissIndex:
    """Return the vector index over normalised `blocks` (float32 [n, dim] each), with its stored graph, if any.

    The first `checked` vectors are known to be valid. Raises DamagedError if a vector or the graph is invalid,
    MissingExtraError if FAISS is not installed.
    """
    check_unit(directory, blocks, checked)
    index = FaissIndex(dim, manifest.vectors, settings=manifest.search.get("vectors"), scan=scan)
    index.restore(rows, *blocks)
    if graph := manifest.only_file(storage.GRAPH):
        index.load_graph(directory / graph)
    return index


def has_graph(manifest: Manifest) -> bool:
    """Return whether the generation needs an approximate structure; an unfinished build does not need one yet."""
    exact = manifest.vectors == AUTO and manifest.rows < AUTO_EXACT
    approximate = may_have_structure(manifest.vectors) and not exact
    return manifest.build.complete and approximate and manifest.encoder is not None


def write_graph(directory: Path, name: str, manifest: Manifest, rows: Rows) -> dict[str, FileRecord]:
    """Store the approximate index over all vectors, extending the graph that `manifest` lists, if any."""
    assert manifest.encoder is not None
    dim = manifest.encoder.dim
    blocks = DocumentStore(directory, manifest.segments).vectors(dim)
    path = directory / storage.GRAPH / f"{name}.faiss"
    path.parent.mkdir(exist_ok=True)
    record = open_vectors(directory, manifest, rows, blocks, dim).save_graph(path)
    faults.point("graph.written")
    return {f"{storage.GRAPH}/{path.name}": record} if record else {}
