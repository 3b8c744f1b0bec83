"""`linker index export`: the vectors of an index as a file for NumPy, FAISS or hnswlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, print_json

if TYPE_CHECKING:
    from linker.corpora.vectors.exporting import Format


def export(
    directory: Index,
    npy: Annotated[Path | None, Opt("Write an array, float32 [n, dim].", metavar="OUT")] = None,
    faiss: Annotated[Path | None, Opt("Write a flat FAISS index.", metavar="OUT")] = None,
    hnswlib: Annotated[Path | None, Opt("Write an hnswlib index by cosine.", metavar="OUT")] = None,
    as_json: AsJson = False,
) -> None:
    """Export an index's normalised vectors for NumPy or FAISS.

    OUT.ids.txt holds the ids: line n is the id of row (or label) n, from 0.

    Example: linker index export news.index --npy vectors.npy
    """
    wanted: list[tuple[Format, Path | None]] = [("npy", npy), ("faiss", faiss), ("hnswlib", hnswlib)]
    outs = [(kind, out) for kind, out in wanted if out]
    if not outs:
        raise typer.BadParameter("name a file with --npy, --faiss or --hnswlib")
    from indexes.collection import Collection
    from linker.corpora.vectors.exporting import export_vectors, ids_path

    collection = Collection.open(directory)
    for kind, out in outs:
        count = export_vectors(collection, out, kind)
        if as_json:
            paths = {"file": path_text(out), "ids": path_text(ids_path(out))}
            print_json({"vectors": count, "format": kind, **paths})
        else:
            print(f"{out}: {count} vectors; their ids are in {ids_path(out)}")
