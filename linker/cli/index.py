"""`linker index …`: build, add, delete, compact, drop, info, verify."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indexes.address import Address, shown
from linker.base.options import Opt, values
from linker.base.printable import on_one_line
from linker.base.terminal import AsJson, Index, note, print_json, print_result, quantity
from linker.cli import elastic
from linker.cli.columns import Tables, describe
from linker.cli.elastic import Servers
from linker.engine.options import BM25, Bm25Options, BuildOptions, EncoderOption, IntakeOptions, Keep

if TYPE_CHECKING:
    from linker.engine.building import BuildReport

Corpora = Annotated[list[Path], Opt(
    "JSONL, CSV, TSV (also .gz), XLSX, a BEIR folder, a folder of text files, or ir_datasets:ID.",
    "", metavar="CORPUS...")]  # fmt: skip
Wait = Annotated[float, Opt("How long to wait for another writer to finish.", low=0, metavar="SECONDS")]
WAIT = 30.0  # seconds, as in Engine's methods


def build(
    corpus: Corpora,
    out: Annotated[Path, Opt(
        "Directory of the new index, or elastic+https://HOST:PORT/NAME (opensearch+…) on a cluster.",
        metavar="DIR")],
    options: BuildOptions,
    ranking: Bm25Options,
    servers: Servers,
    tables: Tables,
    fields: Annotated[str, Opt(
        "Rank by these fields (BM25F): title, text, or the names of metadata fields.", group=BM25,
        metavar="NAME,NAME…")] = "",
    resume: Annotated[bool, Opt("Continue an interrupted build.", "--resume")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Build an index from one or more corpora.

    Example: linker index build articles.jsonl --out news.index --encoder minilm
    """
    from indexes.text.parameters import Bm25Parameters, Field
    from linker.engine import building

    ranked_fields = tuple(Field(name.strip()) for name in fields.split(",")) if fields else ()
    columns = tables.columns(adding=True)
    options = dataclasses.replace(
        options,
        bm25=ranking.changed(Bm25Parameters(fields=ranked_fields)),
        columns=columns,
        elastic=servers.settings(options.vectors, out),
    )
    describe(corpus, columns)
    report = building.build(corpus, out, options, resume=resume)
    outcome = "everything read so far is committed; repeat the command with --resume to continue"
    _report(report, out, as_json, outcome)


def add(
    directory: Index,
    corpus: Corpora,
    options: IntakeOptions,
    tables: Tables,
    replace: Annotated[bool, Opt("Replace documents whose id is already in the index.", "--replace")] = False,
    encoder: EncoderOption = None,
    wait: Wait = WAIT,
    as_json: AsJson = False,
) -> None:
    """Add corpora to an index in one commit.

    Documents whose id is already in the index are quarantined unless --replace is given.

    Example: linker index add news.index more.jsonl --replace
    """
    from indexes.cluster import manifest_of
    from linker.encoders.loading import load_encoder
    from linker.encoders.opened import open_encoder
    from linker.engine import building

    columns = tables.columns(directory, adding=True)
    record = manifest_of(directory).encoder
    override = load_encoder(encoder) if encoder else None
    settings = BuildOptions(**values(options) | {"columns": columns})
    needed = record is not None and options.vectors_file is None and (override or record.fingerprint)
    model = open_encoder(directory, record, override) if record and needed else None
    describe(corpus, columns)
    report = building.add(corpus, directory, model, settings, replace=replace, wait=wait)
    outcome = "added documents stay; repeat the command" if Address.of(directory) else "nothing was added"
    _report(report, directory, as_json, outcome)


def _report(report: BuildReport, directory: Path, as_json: bool, outcome: str) -> None:
    """Print what was added; if the command was interrupted, print the `outcome` and raise typer.Exit."""
    for message in report.notes:
        note(message)
    line = f"{shown(directory)}: {quantity(report.added, 'document')} added, {report.documents:,} in all"
    print_result(dataclasses.asdict(report), line, as_json)
    if report.quarantined and not as_json:
        address = Address.of(directory)
        where = f"the index {address.name}-quarantine" if address else f"{directory}/quarantine/"
        note(f"{quantity(report.quarantined, 'record')} could not be used, and the reasons are in {where}")
    if report.interrupted:
        note(f"interrupted: {outcome}")
        raise typer.Exit(130)


def delete(
    directory: Index,
    ids: Annotated[list[str] | None, Opt("", "", metavar="ID...")] = None,
    ids_file: Annotated[Path | None, Opt("A file with one id per line.", "--ids", metavar="FILE")] = None,
    keep: Keep = None,
    wait: Wait = WAIT,
    as_json: AsJson = False,
) -> None:
    """Delete documents in one commit.

    If an id is not in the index, that is an error and nothing is deleted.

    Example: linker index delete news.index a17 a18
    """
    from indexes.writer import writer_of
    from linker.base.files import nonempty_lines

    unique = list(dict.fromkeys([*(ids or []), *(nonempty_lines(ids_file) if ids_file else [])]))
    if not unique:
        raise typer.BadParameter("name the ids to delete, or a file of them with --ids")
    with writer_of(directory, keep, wait=wait) as writer:
        writer.remove(unique)
        manifest = writer.commit()
    print_result(
        {"deleted": len(unique), "documents": manifest.documents, "generation": manifest.generation},
        f"{shown(directory)}: {quantity(len(unique), 'document')} deleted, {manifest.documents:,} left",
        as_json,
    )


def compact(directory: Index, keep: Keep = None, as_json: AsJson = False) -> None:
    """Reclaim the space of deleted documents.

    Drops their texts, vectors and BM25 statistics, and merges the index into one segment.

    Example: linker index compact news.index
    """
    from indexes.writer import Writer

    if address := Address.of(directory):
        elastic.compact(address, keep, as_json)
        return
    with Writer.open(directory, keep) as writer:
        before = writer.manifest
        after = writer.compact()
    dropped = before.rows - after.rows
    sizes = [sum(f.bytes for f in manifest.files.values()) for manifest in (before, after)]
    line = f"{directory}: nothing to compact, {quantity(after.documents, 'document')}"
    if after is not before:
        line = f"{directory}: {quantity(after.documents, 'document')}, {quantity(dropped, 'deleted one')} dropped, "
        line += f"{sizes[0]} bytes before and {sizes[1]} now"
    print_result({"dropped": dropped, "documents": after.documents, "bytes": sizes[1]}, line, as_json)


def drop(
    directory: Index,
    yes: Annotated[bool, Opt("Do not ask for confirmation.", "--yes -y")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete an index permanently.

    Deletes its files and its data on Elasticsearch; other files in the directory stay.

    Example: linker index drop news.index --yes
    """
    from indexes.dropping import drop as drop_index
    from indexes.store import manifest as manifests

    if address := Address.of(directory):
        elastic.drop(address, yes, as_json)
        return
    manifest = manifests.load(directory)
    where = f" and on {manifest.elastic['index']}" if manifest.elastic else ""
    if not yes:
        typer.confirm(
            f"delete {directory} with {quantity(manifest.documents, 'document')}{where}?",
            abort=True,
            err=True,
        )
    dropped = drop_index(directory)
    print_result(
        {"documents": dropped.documents, "generation": dropped.generation},
        f"{directory}: deleted, with {quantity(dropped.documents, 'document')}{where}",
        as_json,
    )


def info(directory: Index, as_json: AsJson = False) -> None:
    """Show the settings, size and state of an index.

    Example: linker index info news.index
    """
    from indexes.cluster import manifest_of, size_of
    from indexes.store import generations

    manifest, remote = manifest_of(directory), Address.of(directory)
    values: dict[str, Any] = {
        "documents": manifest.documents,
        "deleted": None if remote else manifest.rows - manifest.documents,
        "quarantined": manifest.quarantined,
        "complete": manifest.build.complete,
        "generation": manifest.generation,
        "generations": None if remote else list(generations.kept(directory, manifest)) or None,
        "language": manifest.analysis.language,
        "analysis": manifest.analysis.to_json(),
        "bm25": manifest.bm25.to_json(),
        "positions": manifest.positions,
        "vectors": manifest.vectors,
        "elastic": dict(manifest.elastic) or None,
        "encoder": dataclasses.asdict(manifest.encoder) if manifest.encoder else None,
        "search": dict(manifest.search) or None,
        "bytes": size_of(remote) if remote else sum(f.bytes for f in manifest.files.values()),
        "files": len(manifest.files),
        "format": manifest.format,
    }
    if as_json:
        print_json(values)
        return
    if manifest.encoder and not manifest.embeds:
        values["encoder"] = f"unknown: vectors of {manifest.encoder.dim} dimensions, computed elsewhere"
    for name, value in values.items():
        print(f"{name:12} {_plain(value)}")
    if not manifest.build.complete:
        note("the build is not finished: continue it with `linker index build … --resume`")


def _plain(value: Any) -> str:
    """Return a value of `info` as people read it: "k1 1.2, b 0.75"."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_plain, value))
    return "-" if value is None else on_one_line(str(value))


def verify(
    directory: Index,
    expect: Annotated[int | None, Opt(
        "The expected number of documents: any other number counts as damage.", low=0, metavar="N")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check every file of an index for damage.

    Files are compared with their checksums and with each other. On a cluster, documents are counted, and a sample of
    them is read and searched for. Damage means exit status 1.

    Example: linker index verify news.index
    """
    if address := Address.of(directory):
        elastic.verify(address, expect, as_json)
        return
    from indexes.collection import contradictions
    from indexes.store import files as storage
    from indexes.store import generations
    from linker.encoders.opened import graph_damage

    manifest = generations.with_kept(directory)
    while lines := storage.damage(directory, manifest):
        newer = generations.with_kept(directory)
        if newer.generation == manifest.generation:
            break
        manifest = newer  # a writer committed meanwhile
    lines = lines or contradictions(directory) or graph_damage(directory, manifest.encoder)
    lines = lines or elastic.differences(directory)
    if expect not in (None, manifest.documents):
        lines = [*lines, f"{directory}: {quantity(manifest.documents, 'document')} instead of {expect:,}"]
    whole = f"{directory}: {quantity(len(manifest.files), 'file')}, all as they were written"
    if manifest.elastic:
        whole += (
            f"\n{manifest.elastic['index']} holds the same documents, judging by their number and a sample"
        )
    found = "\n".join(f"damaged: {line}" for line in lines) or whole
    print_result({"files": len(manifest.files), "damaged": lines}, found, as_json)
    if lines:
        raise typer.Exit(1)
