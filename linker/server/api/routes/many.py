"""`GET /v1/documents` and `/v1/documents:delete`: list documents page by page, and delete many at once."""

from __future__ import annotations

import itertools
from typing import Annotated

from fastapi import Body, Query
from pydantic import Field
from starlette.responses import Response

from indexes.interface import Document, check_id
from linker.server.api.guard import require
from linker.server.api.routes.common import InIndex, Model, examples, json, problems, routes
from linker.server.api.routes.documents import StoredDocument

router = routes("documents")
MOST_LISTED, MOST_DELETED = 1000, 10_000


class DocumentPage(Model):
    """Documents in the order in which they were added."""

    documents: list[StoredDocument]
    next: str | None = Field(description="Value of `after` for the next page; null on the last one.")


class DeleteRequest(Model):
    """Documents to delete."""

    ids: list[Annotated[str, Field(min_length=1, max_length=4000)]] = Field(max_length=MOST_DELETED)


class DeleteResult(Model):
    """The outcome for the documents."""

    deleted: int
    missing: list[str] = Field(description="Ids that were not in the index.")
    generation: int = Field(description="Number of a commit that no longer contains them.")


@router.get(
    "/v1/documents",
    response_model=DocumentPage,
    responses=problems(),
    summary="List documents",
    dependencies=[require("read")],
)
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

    page = await served.run(found)
    listed = [{"id": d.id, "title": d.title, "text": d.text, "metadata": d.metadata} for d in page[:limit]]
    return json({"documents": listed, "next": page[limit - 1].id if len(page) > limit else None})


@router.post(
    "/v1/documents:delete",
    response_model=DeleteResult,
    responses=problems(),
    summary="Delete many documents",
    dependencies=[require("write")],
)
async def delete(
    body: Annotated[DeleteRequest, Body(openapi_examples=examples(two={"ids": ["a1", "a2"]}))],
    served: InIndex,
) -> Response:
    """Delete documents in one commit; ids that are not in the index are named in the answer."""
    ids = [check_id(id_) for id_ in dict.fromkeys(body.ids)]
    had = await served.change(lambda: served.engine.apply(ids))
    missing = [id_ for id_, there in zip(ids, had, strict=True) if not there]
    generation = served.engine.collection.manifest.generation
    return json({"deleted": len(ids) - len(missing), "missing": missing, "generation": generation})
