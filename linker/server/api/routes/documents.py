"""`/v1/documents`: read, put and delete one document; list, add and delete many."""

import itertools
from typing import Annotated, Any

from fastapi import Body, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from indexes.interface import Document, check_id
from linker.corpora.records import Columns, UnusableError, make_document
from linker.server.api.bulk import BATCH_BYTES, BATCH_DOCUMENTS, MOST_BAD, DocumentStream
from linker.server.api.routes.common import (
    InIndex,
    Mapping,
    about,
    content_type,
    describe,
    examples,
    json,
    routes,
)  # fmt: skip
from linker.server.errors import ProblemError, problem_of
from linker.server.fields import Model

router = routes("documents")
NDJSON = ("application/x-ndjson", "application/jsonl", "application/json-lines")

MOST_LISTED, MOST_DELETED = 1000, 10_000

DocumentId = Annotated[
    str,
    Path(
        max_length=4000,
        description="Id of the document, percent-encoded: any string without white space; slashes need no encoding.",
        examples=["news/2021-03-14"],
    ),
]


class DocumentBody(Model):
    """A document without its id."""

    text: str = Field(
        "", description="The text that is searched; a title alone is enough.", examples=["Heavy rain …"]
    )
    title: str = Field("", examples=["Floods in Valencia"])
    metadata: Mapping = Field(
        {}, description="Metadata that `where` can filter on.", examples=[{"lang": "en"}]
    )


class StoredDocument(Model):
    """A document of an index."""

    id: str = Field(examples=["news/2021-03-14"])
    title: str
    text: str
    metadata: dict[str, Any]


class PutResult(Model):
    """The result of storing a document."""

    id: str
    created: bool = Field(description="False if it replaced a document.")
    generation: int = Field(description="Number of a commit that contains it.")


class UnusedLine(Model):
    """A line from which no document was added."""

    line: int = Field(description="Line number, from 1.", examples=[3])
    reason: str = Field(examples=["no id: no field _id or id among text"])


class BulkReport(Model):
    """The result of adding documents from lines."""

    index: str
    lines: int = Field(description="Lines that were read.")
    added: int
    replaced: int
    commits: int
    quarantined: list[UnusedLine] = Field(description="The lines that were not used, each with the reason.")


class DocumentPage(Model):
    """Documents in the order in which they were added."""

    documents: list[StoredDocument]
    next: str | None = Field(description="Value of `after` for the next page; null on the last one.")


class DeleteRequest(Model):
    """Documents to delete."""

    ids: list[Annotated[str, Field(min_length=1, max_length=4000)]] = Field(max_length=MOST_DELETED)


class DeleteResult(Model):
    """The result of deleting documents."""

    deleted: int
    missing: list[str] = Field(description="Ids that were not in the index.")
    generation: int = Field(description="Number of a commit that no longer contains them.")


EXAMPLES = examples(
    news={
        "title": "Floods in Valencia",
        "text": "Heavy rain …",
        "metadata": {"lang": "en", "date": "2021-03-14"},
    },
    only_text={"text": "Elections in May"},
)


@router.get("/v1/documents", **about(DocumentPage, "List documents"))
async def documents(
    served: InIndex,
    where: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        Query(
            max_length=10, description="Conditions on the metadata; all must hold.", examples=[["lang=en"]]
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
    after: Annotated[
        str,
        Query(
            max_length=2000,
            description="Id of the document after which the page begins: `next` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED, description="How many documents to return.")] = 100,
) -> Response:
    """Return one page of documents of the last commit; if `after` was deleted meanwhile, the answer is 404."""

    def found() -> list[Document]:
        served.engine.refresh()
        return list(itertools.islice(served.engine.documents(where or None, after), limit + 1))

    page = await served.pool.run(found)
    following = page[limit - 1].id if len(page) > limit else None
    return json({"documents": [*map(describe, page[:limit])], "next": following})


@router.post(
    "/v1/documents:delete", name="delete", **about(DeleteResult, "Delete many documents", scope="write")
)
async def delete_many(
    body: Annotated[DeleteRequest, Body(openapi_examples=examples(two={"ids": ["a1", "a2"]}))],
    served: InIndex,
) -> Response:
    """Delete documents in one commit; ids that are not in the index are named in the answer."""
    ids = [check_id(id_) for id_ in dict.fromkeys(body.ids)]
    had = await served.change(lambda: served.engine.apply(ids))
    missing = [id_ for id_, existed in zip(ids, had, strict=True) if not existed]
    generation = served.engine.collection.manifest.generation
    return json({"deleted": len(ids) - len(missing), "missing": missing, "generation": generation})


@router.get("/v1/documents/{id:path}", **about(StoredDocument, "Read a document"))
async def read(id: DocumentId, served: InIndex) -> Response:
    """Return a document of the last commit."""

    def find() -> Document:
        served.engine.refresh()
        return served.engine.document(id)

    return json(describe(await served.pool.run(find)))


@router.put(
    "/v1/documents/{id:path}",
    **about(
        PutResult,
        "Add or replace a document",
        501,
        scope="write",
        success={201: {"model": PutResult, "description": "It is new."}},
    ),
)
async def put(
    id: DocumentId,
    body: Annotated[DocumentBody, Body(openapi_examples=EXAMPLES)],
    served: InIndex,
) -> Response:
    """Store a document, in one commit with others stored at the same time; see also `documents:bulk`."""
    created = await served.put(_document(id, body))
    generation = served.engine.collection.manifest.generation
    return json({"id": id, "created": created, "generation": generation}, 201 if created else 200)


@router.delete("/v1/documents/{id:path}", **about(None, "Delete a document", scope="write"), status_code=204)
async def delete(id: DocumentId, served: InIndex) -> Response:
    """Delete a document, in one commit with others changed at the same time."""
    await served.delete(check_id(id))
    return Response(status_code=204)


@router.post(
    "/v1/documents:bulk",
    **about(BulkReport, "Add many documents", 408, 415, 501, scope="write"),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "JSON lines: an object with id, text, title; all other fields are metadata.",
            "content": {
                NDJSON[0]: {
                    "schema": {"type": "string"},
                    "example": '{"id": "a1", "title": "Floods", "text": "Heavy rain", "lang": "en"}\n'
                    '{"id": "a2", "text": "Elections in May"}\n',
                }
            },
        }
    },
    description="Read JSON lines as they arrive, and commit after "
    f"{BATCH_DOCUMENTS:,} documents or {BATCH_BYTES >> 20} MiB: memory holds one such batch, and "
    "one line of at most 16 MiB. Unusable lines are listed in the response, and the others are added; "
    f"after {MOST_BAD:,} unusable lines, the rest is refused. An error has the member `report`, with the outcome of "
    "the lines before it: committed documents stay.",
)
async def bulk(
    request: Request,
    served: InIndex,
    replace: Annotated[
        bool,
        Query(
            description="Whether a document replaces one with the same id; otherwise it goes to quarantine."
        ),
    ] = False,
) -> Response:
    """Add the documents of the body."""
    if (
        content_type(request) not in NDJSON
        or request.headers.get("content-encoding", "identity") != "identity"
    ):
        raise ProblemError(415, f"send JSON lines as {NDJSON[0]}, not compressed", "unsupported-media-type")
    task, stream = DocumentStream(served, replace=replace), request.stream()
    try:
        report = await task.take(stream)
    except Exception as error:
        problem = problem_of(error)
        if problem.status_code == 500:
            raise
        # Read the rest, since a client that is still sending would not read the answer.
        async for _ in stream:
            pass
        problem.more["report"] = task.report.to_json()
        raise problem from error
    return json(report.to_json())


def _document(id_: str, body: DocumentBody) -> Document:
    fields = {"id": check_id(id_), "title": body.title, "text": body.text, "metadata": body.metadata}
    try:
        return make_document(fields, Columns())
    except UnusableError as e:
        raise ProblemError(400, str(e), "bad-document") from None
