"""An index's vectors as a NumPy, FAISS or hnswlib file, with the ids next to it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from indexes.collection import Collection
from indexes.disk.writing import sync
from indexes.errors import importing
from indexes.interface import BackendUnavailableError, IndexesError, Matrix
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from linker.base.errors import InputError
from linker.base.files import replacing

Format = Literal["npy", "faiss", "hnswlib"]
BATCH = 1 << 16  # rows copied at a time
LINKS, WIDTH, SEED = 16, 200, 100  # hnswlib's own defaults


def ids_path(out: Path) -> Path:
    """Return the file of the ids that `export_vectors` writes next to `out`."""
    return out.with_name(out.name + ".ids.txt")


def export_vectors(collection: Collection, out: Path, kind: Format) -> int:
    """Write the normalised vectors of all live documents to `out`; return their number.

    "npy": float32 [n, dim]; "faiss": an IndexFlatIP; "hnswlib": an index by cosine whose labels are row numbers. Line
    n of `OUT.ids.txt` is the id of row n. Raises IndexesError if the index has no vectors, BackendUnavailableError if
    they are on a server, InputError if a file cannot be written, MissingExtraError.
    """
    index = collection.hybrid.vectors
    if index is None:
        raise IndexesError(f"{collection.directory} has no vectors to export: build it again with `encoder`")
    if not isinstance(index, FaissIndex):
        raise BackendUnavailableError("only vectors in the directory itself can be exported")
    rows = index.live_rows()
    if not len(rows):
        raise IndexesError(f"{collection.directory} holds no documents: there is nothing to export")
    write = {"npy": _write_npy, "faiss": _write_faiss, "hnswlib": _write_hnswlib}[kind]
    blocks = (index.vectors[rows[start : start + BATCH]] for start in range(0, len(rows), BATCH))
    write(out, blocks, len(rows), index.dim)
    with replacing(ids_path(out)) as file:
        file.write("".join(f"{collection.rows.ids[row]}\n" for row in rows.tolist()).encode())
    return len(rows)


def _write_npy(out: Path, blocks: Iterator[Matrix], rows: int, dim: int) -> None:
    with replacing(out) as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").data)


def _write_faiss(out: Path, blocks: Iterator[Matrix], _: int, dim: int) -> None:
    faiss = load_faiss()
    flat = faiss.IndexFlatIP(dim)
    for block in blocks:
        flat.add(np.ascontiguousarray(block))
    with replacing(out) as file:
        faiss.write_index(flat, faiss.PyCallbackIOWriter(file.write))


def _write_hnswlib(out: Path, blocks: Iterator[Matrix], rows: int, dim: int) -> None:
    with importing("export for hnswlib (the package hnswlib)", "bench"):
        import hnswlib
    index = hnswlib.Index(space="cosine", dim=dim)
    index.init_index(max_elements=rows, M=LINKS, ef_construction=WIDTH, random_seed=SEED)
    for number, block in enumerate(blocks):
        start = number * BATCH
        index.add_items(block, np.arange(start, start + len(block)))
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        index.save_index(str(temporary))
        temporary.replace(out)
        sync(out.parent)
    except (OSError, RuntimeError) as e:
        raise InputError(f"cannot write {out}: {e}") from e
    finally:
        temporary.unlink(missing_ok=True)
