"""`POST /v1/embeddings` and `GET /v1/models` in OpenAI's format, so that its clients can use an index's encoder."""

import base64
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Body
from pydantic import Field, field_validator
from starlette.responses import Response

from indexes.interface import Matrix
from linker.server.api.routes.common import InService, about, examples, json, routes, success
from linker.server.api.served import Served, Service
from linker.server.errors import ProblemError
from linker.server.fields import Model

router = routes("models")
MOST_INPUTS, LONGEST = 2048, 100_000

Input = Annotated[str, Field(min_length=1, max_length=LONGEST)]
ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Name of an index, to use its encoder, or name of an encoder that an index has.",
        examples=["news"],
    ),
]


class EmbeddingRequest(Model):
    """Texts to encode."""

    model: ModelName
    input: Input | Annotated[list[Input], Field(min_length=1, max_length=MOST_INPUTS)] = Field(
        description="A text, or a list of texts; arrays of tokens are not supported.",
    )
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or base64 of their bytes (float32, little endian)."
    )
    dimensions: int | None = Field(
        None, ge=1, description="If it is given, it must be the encoder's own dimension."
    )
    user: str | None = Field(None, max_length=1000, description="Ignored.")

    @field_validator("input", mode="before")
    @classmethod
    def _no_tokens(cls, given: Any) -> Any:
        if isinstance(given, list) and given and isinstance(given[0], int | list):
            raise ValueError("arrays of tokens are not supported: send texts")
        return given

    @property
    def texts(self) -> list[str]:
        """The input as a list of texts."""
        return [self.input] if isinstance(self.input, str) else self.input


class Embedding(Model):
    """The vector of one text, normalised to length 1."""

    object: Literal["embedding"] = "embedding"
    index: int = Field(description="Position of the text in the request, from 0.")
    embedding: list[float] | str


class Usage(Model):
    """The number of words encoded, in place of tokens, which each encoder counts differently."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingAnswer(Model):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class ModelDescription(Model):
    """An index whose encoder can be used."""

    id: str = Field(examples=["news"])
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "linker"


class ModelList(Model):
    """The models."""

    object: Literal["list"] = "list"
    data: list[ModelDescription]


def with_encoder(service: Service, model: str | None) -> Served:
    """Return the index whose encoder `model` names, by the index's name or the encoder's.

    Without `model`, return the only index that has an encoder. Raises ProblemError if none or several match.
    """
    known = {name: served for name, served in service.indexes.items() if _encoder_name(served)}
    if not known:
        raise _refusal(400, "no index has an encoder: build an index with one", "no-encoder")
    if model is None and len(known) == 1:
        return next(iter(known.values()))
    if model in known:
        return known[model]
    matches = [served for served in known.values() if _encoder_name(served) == model]
    if not matches:
        raise _refusal(404, f"there is no model {model!r}: choose one of {', '.join(known)}", "unknown-model")
    fingerprints = {e.fingerprint for s in matches if (e := s.engine.collection.manifest.encoder) is not None}
    if len(fingerprints) > 1:
        raise _refusal(
            400, f"several encoders are named {model!r}: name an index: {', '.join(known)}", "ambiguous-model"
        )
    return matches[0]


def _refusal(status: int, detail: str, code: str) -> ProblemError:
    """Return a problem whose text is also in `message`, where OpenAI and Cohere clients look for it."""
    return ProblemError(status, detail, code, message=detail)


def _encoder_name(served: Served) -> str | None:
    record = served.engine.collection.manifest.encoder
    return record.name if record else None


EXAMPLES = examples(
    one_text={"model": "news", "input": "Floods in Valencia"},
    several_as_base64={"model": "news", "input": ["Floods", "Elections"], "encoding_format": "base64"},
)
ANSWER = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}],
    "model": "news",
    "usage": {"prompt_tokens": 3, "total_tokens": 3},
}


@router.post(
    "/v1/embeddings",
    **about(
        EmbeddingAnswer,
        "Encode texts (OpenAI's shape)",
        501,
        success={200: success(ANSWER, "One vector per text.")},
    ),
)
async def embeddings(
    request: Annotated[EmbeddingRequest, Body(openapi_examples=EXAMPLES)], service: InService
) -> Response:
    """Return the vectors of texts from an index's encoder; OpenAI API clients work with the base URL `…/v1`."""
    served = with_encoder(service, request.model)

    parts = await served.each(served.engine.embed, request.texts)

    def described() -> Response:
        vectors = np.concatenate(parts)
        if request.dimensions not in (None, vectors.shape[1]):
            detail = f"this encoder has {vectors.shape[1]} dimensions: leave `dimensions` out"
            raise _refusal(400, detail, "wrong-dimension")
        return json(_answer(request, vectors))

    return await served.heavy.run(described)


def _answer(request: EmbeddingRequest, vectors: Matrix) -> dict[str, Any]:
    words = sum(len(text.split()) for text in request.texts)
    rows: list[Any] = list(vectors)
    if request.encoding_format == "base64":
        rows = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)],
        "model": request.model,
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


MODEL = {"id": "news", "object": "model", "created": 0, "owned_by": "linker"}


@router.get(
    "/v1/models",
    **about(
        ModelList,
        "List the models (OpenAI's shape)",
        success={200: success({"object": "list", "data": [MODEL]}, "The models.")},
    ),
)
async def models(service: InService) -> Response:
    """Return the indexes that have an encoder."""
    names = [name for name, served in service.indexes.items() if _encoder_name(served)]
    return json({"object": "list", "data": [ModelDescription(id=name).model_dump() for name in names]})
