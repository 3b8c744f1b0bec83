"""`GET /v1/indexes`: the searchable indexes."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.responses import Response

from linker.server.api.guard import require
from linker.server.api.routes.common import InService, Model, json, problems, routes
from linker.server.api.served import Served

router = routes("indexes")


class IndexDescription(Model):
    """One index."""

    name: str = Field(examples=["news"])
    documents: int
    generation: int = Field(description="Number of the last commit that is open.")
    mode: str = Field(description="How texts are searched unless a request says otherwise.")
    encoder: str | None = Field(description="Name of the encoder; null if there is none.")
    dimension: int | None = Field(description="Dimension of its vectors.")
    language: str
    backend: str = Field(description="Where BM25 runs: embedded, elastic or opensearch.")
    ranker: bool = Field(description="Whether a learned ranker is stored in the index.")
    calibration: bool = Field(description="Whether hits have probabilities.")
    fields: list[str] = Field(description="Fields of the metadata: what `where` can name.")


class IndexList(Model):
    """The indexes, by name."""

    indexes: list[IndexDescription]


@router.get(
    "/v1/indexes",
    response_model=IndexList,
    responses=problems(),
    summary="List the indexes",
    dependencies=[require("read")],
)
async def indexes(service: InService) -> Response:
    """Return name, size and settings of each index."""
    listed = [await served.run(lambda served=served: describe(served)) for served in service.indexes.values()]  # type: ignore[misc]
    return json({"indexes": listed})


def describe(served: Served) -> dict[str, Any]:
    """Return the facts about an index that a client may know."""
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
