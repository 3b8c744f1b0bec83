"""The index commands that work differently for an index on a cluster (at an address) than for a directory."""

from __future__ import annotations

from pathlib import Path

import typer

from indexes.address import Address
from linker.base.terminal import note, print_json


def refuse(directory: Path, what: str) -> None:
    """Raise IndexesError, with the remedy, if `what` needs a directory and an address is given."""
    if address := Address.of(directory):
        from indexes.cluster import refused

        raise refused(address, what)


def drop(address: Address, yes: bool, as_json: bool) -> None:
    """Delete an index on a cluster, after a confirmation."""
    from indexes.cluster import drop as drop_remote

    if not yes:
        typer.confirm(f"delete {address}?", abort=True, err=True)
    documents, generation = drop_remote(address)
    if as_json:
        print_json({"documents": documents, "generation": generation})
    else:
        print(f"{address}: deleted, with {documents} documents")


def compact(address: Address, keep: int | None, as_json: bool) -> None:
    """Let the servers reclaim the space of deleted documents."""
    from indexes.cluster import RemoteWriter, size_of

    before = size_of(address)
    with RemoteWriter.change(address, keep) as writer:
        documents = writer.compact().documents
    after = size_of(address)
    if as_json:
        print_json({"documents": documents, "bytes": after})
    else:
        print(f"{address}: {documents} documents, {before} bytes before and {after} now")


def verify(address: Address, documents: int | None, as_json: bool) -> None:
    """Check an index on a cluster by counts and a random sample. Raises typer.Exit if it is damaged."""
    from indexes.cluster import check

    checked = check(address, documents=documents)
    for line in checked.notes:
        note(line)
    if as_json:
        print_json({"documents": checked.documents, "sampled": checked.sampled, "damaged": checked.damage})
    else:
        for line in checked.damage:
            print(f"damaged: {line}")
        if not checked.damage:
            print(
                f"{address}: {checked.documents} documents by count, and {checked.sampled} of them by content"
            )
    if checked.damage:
        raise typer.Exit(1)
