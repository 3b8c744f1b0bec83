"""Indexes on servers: the options for Elasticsearch, the index commands for an address, and `linker index rebuild`."""

# No postponed annotations: the records of options are read from their fields' types.
import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from indexes.address import Address, shown
from indexes.kinds import on_server
from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, note, print_result, quantity

if TYPE_CHECKING:
    from indexes.cluster.client import ElasticSettings


def refuse(directory: Path, what: str) -> None:
    """Raise IndexesError, with the remedy, if `what` needs a directory and an address is given."""
    if address := Address.of(directory):
        from indexes.cluster import refusal

        raise refusal(address, what)


def drop(address: Address, yes: bool, as_json: bool) -> None:
    """Delete an index on a cluster, after a confirmation."""
    from indexes.cluster import drop as drop_remote

    if not yes:
        typer.confirm(f"delete {address}?", abort=True, err=True)
    documents, generation = drop_remote(address)
    line = f"{address}: deleted, with {quantity(documents, 'document')}"
    print_result({"documents": documents, "generation": generation}, line, as_json)


def compact(address: Address, keep: int | None, as_json: bool) -> None:
    """Let the servers reclaim the space of deleted documents."""
    from indexes.cluster import RemoteWriter, size_of

    before = size_of(address)
    with RemoteWriter.change(address, keep) as writer:
        documents = writer.compact().documents
    after = size_of(address)
    line = f"{address}: {quantity(documents, 'document')}, {before} bytes before and {after} now"
    # The servers' own count includes a tombstone per deletion.
    print_result({"dropped": None, "documents": documents, "bytes": after}, line, as_json)


def verify(address: Address, documents: int | None, as_json: bool) -> None:
    """Check an index on a cluster by counts and a random sample. Raises typer.Exit if it is damaged."""
    from indexes.cluster import check

    checked = check(address, documents=documents)
    for line in checked.notes:
        note(line)
    whole = f"{address}: {quantity(checked.documents, 'document')} by count, and {checked.sampled} of them by content"
    found = "\n".join(f"damaged: {line}" for line in checked.damage) or whole
    facts = {"documents": checked.documents, "sampled": checked.sampled, "damaged": checked.damage}
    print_result(facts, found, as_json)
    if checked.damage:
        raise typer.Exit(1)


ELASTIC = "Elasticsearch"
Urls = Annotated[list[str] | None, Opt(
    "Address of Elasticsearch; repeat it for several nodes.", "--url", ELASTIC, "URL")]  # fmt: skip
Shards = Annotated[int | None, Opt("Number of shards; default 1.", group=ELASTIC, low=1)]
Replicas = Annotated[int | None, Opt("Replicas per shard; default 0.", group=ELASTIC, low=0)]


@dataclass(frozen=True, slots=True)
class Servers:
    """The options for where BM25 runs."""

    backend: Annotated[
        Literal["embedded", "elastic"],
        Opt("Where BM25 runs: in the directory, or on Elasticsearch (needs --url).", group=ELASTIC),
    ] = "embedded"
    url: Urls = None
    index: Annotated[
        str | None,
        Opt("Prefix of the index's name on Elasticsearch; default: DIR's name.", "--prefix", ELASTIC, "NAME"),
    ] = None
    shards: Shards = None
    replicas: Replicas = None

    def settings(self, vectors: str, out: Path) -> "ElasticSettings | None":
        """Return the server's settings, or None for the embedded backend; `out` may be an address on a cluster.

        Raises typer.BadParameter if options contradict the backend.
        """
        shape = self.shards or 1, self.replicas or 0
        if address := Address.of(out):
            if self.url or self.index or self.backend != "embedded":
                raise typer.BadParameter(
                    f"--out {address} already names the server: leave out --backend, --url and --prefix"
                )
            from indexes.cluster.client import ElasticSettings

            return ElasticSettings.of(address, *shape)
        if self.backend == "embedded":
            if self.url or (self.shards, self.replicas) != (None, None) or on_server(vectors):
                raise typer.BadParameter(
                    "--url, --shards, --replicas and elastic vectors need --backend elastic"
                )
            return None
        if not self.url:
            raise typer.BadParameter("--backend elastic needs --url, for example http://127.0.0.1:9200")
        from indexes.cluster.client import ElasticSettings
        from indexes.cluster.index import new_name

        return ElasticSettings(tuple(self.url), new_name(self.index or out.name), *shape)


def rebuild(
    directory: Index,
    url: Urls = None,
    shards: Shards = None,
    replicas: Replicas = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild an index on a cluster, from its directory if it has one.

    A new index is filled, then swapped in; searches continue meanwhile. Without a directory, the documents and vectors
    are copied within the cluster, and changes wait.

    Example: linker index rebuild news.index --shards 2
    """
    from indexes.cluster import beside, rebuilding

    if address := Address.of(directory):
        if url:
            raise typer.BadParameter(
                "the address already names its servers: leave out --url, or copy the index with `linker index join`"
            )
        manifest = rebuilding.rebuild(address, shards, replicas)
    else:
        changes = {"urls": tuple(url) if url else None, "shards": shards, "replicas": replicas}
        given = {name: value for name, value in changes.items() if value is not None}
        manifest = beside.rebuild(directory, given)
    line = f"{shown(directory)}: {quantity(manifest.documents, 'document')} on {', '.join(manifest.elastic['urls'])}"
    facts = {"documents": manifest.documents, "generation": manifest.generation}
    print_result(facts | dict(manifest.elastic), line, as_json)


@functools.cache  # a command that connects twice asks only once
def confirm_host(hosts: str) -> bool:
    """Ask on the terminal whether to send credentials to a host named only by the index; without a terminal, refuse."""
    question = f"the index names {hosts}: send the credentials there?"
    return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(question, err=True)


def differences(directory: Path) -> list[str]:
    """Return one line per document that differs or is missing on Elasticsearch; note harmless differences."""
    from indexes.store import manifest as manifests

    manifest = manifests.load(directory)
    if not manifest.elastic:
        return []
    from indexes.cluster import compare

    compared = compare(directory, manifest)
    if compared.damage and manifests.load(directory).generation != manifest.generation:
        return differences(directory)  # a writer has committed meanwhile
    for line in compared.notes:
        note(line)
    return compared.damage
