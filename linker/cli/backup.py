"""`linker index backup|restore|checkout|join|export`: copies, older generations, several indexes as one, vectors."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indexes.address import Address, shown
from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, print_result, quantity
from linker.cli import elastic

if TYPE_CHECKING:
    from linker.corpora.vectors.exporting import Format


def backup(
    directory: Index,
    out: Annotated[str, Opt(
        "A new folder, a new file ending in .tar, or - to write a tar archive to stdout.", "", metavar="OUT")],
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Copy an index while it is in use.

    Copies and verifies the last committed generation; writers and searches continue.

    Example: linker index backup news.index news.tar
    """
    from indexes.store import backup as backups

    elastic.refuse(directory, "backups")
    if out != "-":
        manifest = backups.backup(directory, Path(out))
    elif as_json:
        raise typer.BadParameter("the archive goes to stdout: leave out --json, or name a file")
    elif sys.stdout.isatty():
        raise typer.BadParameter(
            "an archive cannot be shown on a terminal: redirect the output, or name a file"
        )
    else:
        backups.write_archive(directory, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation, "files": len(manifest.files)},
        f"{out}: generation {manifest.generation} of {directory}, {quantity(manifest.documents, 'document')}, "
        f"{quantity(len(manifest.files), 'file')}, all as they were written",
        as_json,
    )


def restore(
    source: Annotated[str, Opt(
        "A backup by `index backup`; - reads a tar archive from stdin.", "", metavar="BACKUP")],
    directory: Annotated[Path, Opt("Directory of the new index, absent or empty.", "", metavar="DIR")],
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Restore an index from a backup. The checksum of every file is verified.

    Example: linker index restore news.tar restored.index
    """
    from indexes.store import backup as backups

    if source == "-":
        manifest = backups.restore_archive(sys.stdin.buffer, directory, "the archive on stdin")
    else:
        manifest = backups.restore(Path(source), directory)
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation},
        f"{directory}: generation {manifest.generation} restored, {quantity(manifest.documents, 'document')}",
        as_json,
    )


def checkout(
    directory: Index,
    generation: Annotated[int, Opt("", "", low=0, metavar="GENERATION")],
    as_json: AsJson = False,
) -> None:
    """Bring back an older generation of an index.

    Commits a new generation with the content of an older one that --keep retained (`index info` lists them).

    Example: linker index checkout news.index 3
    """
    from indexes.store import generations

    elastic.refuse(directory, "older generations")
    manifest = generations.checkout(directory, generation)
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation, "from": generation},
        f"{directory}: generation {manifest.generation} has the content of generation {generation}, "
        f"{quantity(manifest.documents, 'document')}",
        as_json,
    )


def leading_indexes(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the leading words that are index directories, as paths, and the remaining words."""
    from indexes.sharded import is_index

    count = next((n for n, word in enumerate(words) if not is_index(Path(word))), len(words))
    return [Path(word) for word in words[:count]], list(words[count:])


def join(
    out: Annotated[Path, Opt(
        "A new directory, one that `join` wrote before, or an address on a cluster.", "", metavar="OUT")],
    directories: Annotated[list[Path], Opt("Directories of the indexes, in order.", "", metavar="DIR...")],
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Let one directory stand for several indexes.

    Nothing is copied: the indexes stay where they are, and each is changed on its own. search, find, serve and mcp
    accept OUT like an index. If OUT is an address on a cluster, the indexes (directories or addresses) are copied into
    a new one there, with their vectors.

    Example: linker index join all.join january.index february.index
    """
    from indexes.sharded import join as join_shards
    from indexes.sharded import manifests_of

    join_shards(out, directories)
    documents = sum(manifest.documents for manifest in manifests_of(out))
    size, count = quantity(documents, "document"), len(directories)
    line = f"{out}: {quantity(count, 'directory', 'directories')}, {size}"
    if Address.of(out):
        line = f"{shown(out)}: {size}, copied from {quantity(count, 'index', 'indexes')}"
    print_result({"shards": [path_text(d) for d in directories], "documents": documents}, line, as_json)


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
        paths = {"file": path_text(out), "ids": path_text(ids_path(out))}
        line = f"{out}: {count} vectors; their ids are in {ids_path(out)}"
        print_result({"vectors": count, "format": kind, **paths}, line, as_json)
