"""From a corpus to a committed index: read, encode, add, commit, and continue after an interruption."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from indexes import merging
from indexes.address import Address
from indexes.cluster import RemoteWriter, manifest_of, refusal, vectors_of
from indexes.cluster.client import ElasticSettings, remember
from indexes.dropping import discard
from indexes.interface import IndexesError
from indexes.store import manifest as manifests
from indexes.store.ownership import check_vacant
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.text.parameters import Bm25Parameters
from indexes.writer import Writer, writer_of
from linker.base.errors import InputError
from linker.base.files import path_text
from linker.base.options import takes, values
from linker.corpora import Columns
from linker.corpora.guessing import in_header
from linker.corpora.identity import identity
from linker.corpora.vectors import GivenVectors, read_vectors
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.encoders.opened import name_for
from linker.engine.intake import (
    COMMIT_DOCUMENTS,
    BuildReport,
    Intake,
    Interruption,
    check_given,
    interruptible,
)
from linker.engine.options import BuildOptions, CreateOptions

__all__ = ["BuildOptions", "BuildReport", "add", "build", "create"]


def build(
    corpora: str | Path | Sequence[str | Path],
    out: str | Path,
    options: BuildOptions | None = None,
    *,
    resume: bool = False,
) -> BuildReport:
    """Index corpora into the directory `out`; with `resume`, continue from the last commit of an interrupted build.

    Invalid records go to the index's quarantine files. Raises InputError if a corpus cannot be read, IndexesError if
    `out` already has content or, with `resume`, is another build.
    """
    given = [corpora] if isinstance(corpora, (str, Path)) else corpora
    return _build([Path(corpus) for corpus in given], Path(out), options or BuildOptions(), resume=resume)


def _build(corpora: Sequence[Path], out: Path, options: BuildOptions, *, resume: bool) -> BuildReport:
    address = Address.of(out)
    if options.engine == "ray" and options.encoder == "none" and not address:
        raise InputError("`engine` ray distributes the encoding: name an `encoder`, or leave out `engine`")
    sources = tuple((path_text(path), identity(path, options.columns, out)) for path in corpora)
    if not resume and not address:
        _check_target(out)
    given = _given(corpora, options)
    encoder = _encoder(options)
    sources += (given.source,) if given else ()
    columns = in_header(corpora[0], options.columns or Columns()).to_remember() if corpora else {}
    record = BuildRecord(complete=False, position=0, sources=sources, columns=columns)
    requested = requested_manifest(options, out, encoder, record, given)
    if address:
        return _build_on(address, corpora, requested, encoder, options, given, resume=resume)
    if resume and (out / manifests.NAME).exists():
        existing = manifests.load(out)
        check_same_build(existing, requested, out)
        if existing.build.complete:  # interrupted after its last commit
            return BuildReport(existing.documents, 0, 0, existing.generation)
        opened = Writer.open(out, options.keep, resume=True)
    else:
        _reach(options.elastic)
        opened = Writer.create(out, requested, _own_model(Path(options.encoder)), options.keep)
    try:
        with interruptible() as interrupted, opened as writer:
            return Intake(writer, encoder, options, _loader(options), given=given).run(corpora, interrupted)
    except InputError:
        # Nothing was read that could be continued, and the corrected corpus would be refused as another build.
        if not manifests.load(out).documents:
            discard(out)
        raise


def _build_on(
    address: Address,
    corpora: Sequence[Path],
    requested: Manifest,
    encoder: Encoder | None,
    options: BuildOptions,
    given: GivenVectors | None,
    *,
    resume: bool,
) -> BuildReport:
    servers = options.elastic
    opened = (
        RemoteWriter.resume(address)
        if resume
        else RemoteWriter.begin(address, requested, *((servers.shards, servers.replicas) if servers else ()))
    )
    with interruptible() as interrupted, opened as writer:
        check_same_build(writer.manifest, requested, str(address))
        if writer.manifest.build.complete:  # the build was interrupted during its last commit
            after = writer.commit()
            return BuildReport(after.documents, 0, 0, after.generation)
        if options.engine == "ray":
            return _build_by_many(writer, corpora, encoder, options, interrupted)
        return Intake(writer, encoder, options, _loader(options), given=given).run(corpora, interrupted)


def _build_by_many(
    writer: RemoteWriter,
    corpora: Sequence[Path],
    encoder: Encoder | None,
    options: BuildOptions,
    interrupted: Interruption,
) -> BuildReport:
    from linker.engine.scaleout import by_many

    load = _loader(options)
    with by_many(writer, load if encoder else None, options.worker_gpus) as sender:
        every = options.commit_every or COMMIT_DOCUMENTS * sender.workers  # at a commit, all workers wait
        options = dataclasses.replace(options, commit_every=every)
        return Intake(writer, None, options, load).run(corpora, interrupted)


@takes(CreateOptions)
def create(options: CreateOptions) -> None:
    """Create an empty index to be filled by `Engine.add`. Raises IndexesError if `out` already has content."""
    arguments = values(options)
    address, out = Address.of(arguments["out"]), Path(arguments.pop("out"))
    settings = BuildOptions(**arguments)
    servers = settings.elastic
    if address is None:
        _check_target(out)
        _reach(servers)
    model = _encoder(settings)
    manifest = requested_manifest(settings, out, model, BuildRecord())
    if address:
        shape = (servers.shards, servers.replicas) if servers else ()
        with RemoteWriter.begin(address, manifest, *shape) as remote:
            remote.commit()
        return
    with Writer.create(out, manifest, _own_model(Path(settings.encoder))):
        pass


def _given(corpora: Sequence[Path], options: BuildOptions) -> GivenVectors | None:
    """Return the vectors computed elsewhere, if any. Raises InputError unless they match the documents."""
    if options.vectors_file is None:
        if options.ids_file is not None:
            raise InputError("`ids_file` names the rows of `vectors_file`: give both, or neither")
        return None
    if options.engine == "ray":
        raise InputError(
            "`vectors_file` has the vectors: leave out `engine` ray, which would have nothing to encode"
        )
    given = read_vectors(options.vectors_file, options.ids_file)
    check_given(given, corpora, options.columns)
    return given


def _check_target(out: Path) -> None:
    """Raise IndexesError, before an encoder is loaded, if the directory already has content."""
    if out.is_dir():
        check_vacant(out)


def _reach(settings: ElasticSettings | None) -> None:
    """Raise BackendUnavailableError, before anything is written, if a server is named but does not answer."""
    if settings is None:
        return
    from indexes.cluster import ClusterIndex

    with contextlib.closing(ClusterIndex(settings)) as index:
        index.exists()
        remember(settings)


def add(
    corpora: Sequence[Path],
    out: Path,
    encoder: Encoder | None,
    options: BuildOptions,
    *,
    replace: bool = False,
    wait: float = 0,
) -> BuildReport:
    """Add corpora to a finished index in one commit; `wait` is how many seconds to wait for another writer.

    Without `options.columns`, files are read by the columns of the build. With `replace`, a document replaces one
    with the same id; without, it is quarantined. Raises InputError if a corpus cannot be read, IndexesError if the
    index cannot be changed.
    """
    if options.columns is None:
        options = dataclasses.replace(options, columns=Columns.remembered(manifest_of(out).build.columns))
    for path in corpora:
        identity(path, options.columns, out)
    record, given = manifest_of(out).encoder, _given(corpora, options)
    if record and given and given.dim != record.dim:
        raise InputError(
            f"{given.path} has vectors of {given.dim} dimensions, but {out} needs {record.dim}: use its encoder"
        )
    if given and record is None:
        raise InputError(f"{out} has no vectors: leave out `vectors_file`, or build the index again with it")
    if record and given is None and encoder is None:
        raise InputError(
            f"the vectors of {out} were computed elsewhere: give those of the new documents with `vectors_file` and "
            "`ids_file`, or name the encoder that makes them with `encoder`"
        )
    with interruptible() as interrupted, writer_of(out, options.keep, wait=wait) as writer:
        intake = Intake(writer, encoder, options, _loader(options), replace=replace, given=given)
        report = intake.run(corpora, interrupted)
    if isinstance(writer, Writer):
        merging.settle(out)
    return report


def _encoder(options: BuildOptions) -> Encoder | None:
    if options.encoder == "none":
        return None
    here = dataclasses.replace(options, worker_gpus=0)  # the workers use the GPUs, not this process
    return _loader(here)()


def _loader(options: BuildOptions) -> Callable[[], Encoder]:
    precision, compiled = options.precision, options.compiled
    # Ray's workers have no GPU unless one is requested.
    gpu = options.engine == "local" or options.worker_gpus > 0
    return functools.partial(load_encoder, options.encoder, precision=precision, compiled=compiled, gpu=gpu)


def _own_model(folder: Path) -> Path | None:
    """Return the folder if it contains a model of this package, which is small enough to be copied into the index."""
    if not (folder / "config.json").is_file():
        return None
    from linker.encoders.folder import is_saved

    return folder if is_saved(folder) else None


def requested_manifest(
    options: BuildOptions,
    out: Path,
    encoder: Encoder | None,
    build: BuildRecord,
    given: GivenVectors | None = None,
) -> Manifest:
    """Return the manifest of an index to be built. Raises InputError or IndexesError for conflicting options."""
    name = name_for(out, str(options.encoder))
    record = EncoderRecord(name, encoder.fingerprint, encoder.dim) if encoder else None
    if given and record is None:
        record = EncoderRecord(name, "", given.dim)
    if given and record and record.dim != given.dim:
        raise InputError(
            f"{given.path} has vectors of {given.dim} dimensions, but `encoder` {name} makes {record.dim}: name the "
            "encoder that made them, or none"
        )
    vectors = options.vectors if record else "none"
    elastic = options.elastic.to_json() if options.elastic else {}
    if address := Address.of(out):
        if options.keep:
            raise refusal(address, "`keep`")
        vectors = vectors_of(address, vectors)
        elastic = (options.elastic or ElasticSettings.of(address)).to_json()
    return Manifest(
        vectors=vectors,
        analysis=options.analysis,
        bm25=options.bm25 or Bm25Parameters(),
        positions=options.positions,
        encoder=record,
        build=build,
        elastic=elastic,
    )


def check_same_build(existing: Manifest, requested: Manifest, out: Path | str) -> None:
    """Raise IndexesError unless `existing`, the manifest of the index `out`, records the requested build."""
    if existing.build.sources != requested.build.sources:
        raise IndexesError(
            f"{out} was being built from {', '.join(p for p, _ in existing.build.sources)}, and these files "
            "have changed since: give the same corpora in the same order, or build into another directory"
        )
    same_encoder = (existing.encoder and existing.encoder.fingerprint) == (
        requested.encoder and requested.encoder.fingerprint
    )
    for what, equal in (
        ("`encoder`", same_encoder),
        ("`vectors`", existing.vectors == requested.vectors),
        ("`language`", existing.analysis.language == requested.analysis.language),
        ("`tokenizer`, `stop_words` or `min_token`", existing.analysis == requested.analysis),
        ("`positions`", existing.positions == requested.positions),
        ("`k1`, `b`, `k3` or `fields`", existing.bm25 == requested.bm25),
        ("`backend`", bool(existing.elastic) == bool(requested.elastic)),
    ):
        if not equal:
            raise IndexesError(f"{out} was being built with another {what}: give the same one to continue")
