"""Shared by the routes: the service, the index that a request names, JSON responses and their descriptions."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from indexes.interface import Document
from linker.server.api import children
from linker.server.api.guard import MEDIA_TYPE, require
from linker.server.api.pool import OWNER
from linker.server.api.served import Served, Service
from linker.server.errors import ProblemError
from linker.server.guard.tokens import Scope

INDEX: dict[str, Any] = {
    "max_length": 255, "description": "Name of the index; it may be left out if only one is served.",
    "examples": ["news"],
}  # fmt: skip
IndexName = Annotated[str | None, Field(**INDEX)]
IndexQuery = Annotated[str | None, Query(**INDEX)]


def _few(value: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping unchanged. Raises ValueError if it has more than MOST_VALUES values, nested ones included."""
    count, left = 0, list[Any]([value])
    while left:
        each = left.pop()
        inner = list(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        count += len(inner)
        left += inner
        if count > MOST_VALUES:
            raise ValueError(f"at most {MOST_VALUES:,} values")
    return value


MOST_VALUES = 10_000
Mapping = Annotated[dict[str, Any], AfterValidator(_few)]


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(description="Name of the status.", examples=["Bad Request"])
    status: int = Field(examples=[400])
    detail: str = Field(
        description="What is wrong, and how to fix it: the text that the command line prints."
    )
    code: str = Field(description="Kind of the error, for programs.", examples=["bad-filter"])
    request_id: str = Field(description="Identifies the request in the server's log.")
    errors: list[dict[str, str]] | None = Field(
        None,
        description="With status 422: JSON pointers into the request, each with the mistake found there.",
    )


DETAILS = {
    400: "The request is invalid: `code` and `detail` say why.",
    401: "The token is missing or not known.",
    403: "The token lacks the scope, or a page of another site sent the request.",
    404: "There is no such index or document.",
    408: "The body arrived too slowly.",
    409: "The document or index already exists, or the server cannot make or delete this index: `code` says which.",
    413: "The body is too large.",
    415: "This route does not accept the body's content type.",
    421: "The server does not answer to this host name.",
    422: "The request does not match this description; `errors` names each invalid field.",
    429: "Too many requests; Retry-After says when to try again.",
    500: "The fault is the server's; its log describes it under the request id.",
    501: "The server lacks an optional package.",
    503: "A retriever is unavailable, another process is writing, or too many requests are waiting; try again later.",
    504: "There was no answer in time.",
}
ALWAYS = (400, 401, 403, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)


def problems(*more: int, always: tuple[int, ...] = ALWAYS) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a route's errors: the statuses of every route, and `more`."""
    return {
        status: {
            "description": DETAILS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted({*always, *more})
    }


def about(
    model: Any, summary: str, *errors: int, scope: Scope | Literal[""] = "read", success: Any = None
) -> dict[str, Any]:
    """Return the arguments of a route's decorator: the model of its response, its errors, and the required scope.

    `success`: descriptions of its successful responses, by status. Without a `scope`, a parameter of the route requires
    one.
    """
    needed = [require(scope)] if scope else []
    responses = {**(success or {}), **problems(*errors)}
    return {"response_model": model, "summary": summary, "responses": responses, "dependencies": needed}


class _StrictRequest(Request):
    """A request whose JSON is parsed by orjson, which refuses lone surrogates, NaN and a thousand nested levels."""

    short: Any = None  # a short form of the JSON of a large body

    async def json(self) -> Any:
        return orjson.loads(await self.body()) if self.short is None else self.short


def content_type(request: Request) -> str:
    """Return the content type of a body, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_json(request: Request) -> None:
    """Raise ProblemError (415) if a body is not sent as JSON."""
    if content_type(request) != "application/json":
        raise ProblemError(415, "send the body as application/json", "unsupported-media-type")


class StrictRoute(APIRoute):
    """A route that accepts JSON only as application/json, which another site's form cannot send."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request."""
        handle, body = super().get_route_handler(), self.body_field

        async def strict(request: Request) -> Response:
            request = _StrictRequest(request.scope, request.receive)
            if body and (body.field_info.is_required() or await request.body()):
                check_json(request)
                await self._read_large(request)
            return await handle(request)

        return strict

    async def _read_large(self, request: _StrictRequest) -> None:
        """Validate a large body in another process. Raises RequestValidationError if it is invalid.

        A large body for a job is never parsed in this process: the job gets `state.spec`.
        """
        body = await request.body()
        if len(body) > children.LARGE:
            service = await service_of(request)
            async with service.aside[OWNER.get()]:
                output = await children.run(children.__name__, self.endpoint.__module__, self.path, body=body)
            head, _, spec = output.partition(b"\n")
            outcome = orjson.loads(head)
            if outcome["errors"]:
                raise RequestValidationError(outcome["errors"])
            if spec:
                request.short, request.state.spec = outcome["request"], orjson.Fragment(spec)


def routes(tag: str) -> APIRouter:
    """Return a router for one resource."""
    return APIRouter(tags=[tag], route_class=StrictRoute)


def examples(**by_name: Any) -> dict[str, Any]:
    """Return example requests by name, for `Body(openapi_examples=…)`; a test sends each of them."""
    return {name: {"summary": name.replace("_", " "), "value": value} for name, value in by_name.items()}


def success(example: Any, description: str = "") -> dict[str, Any]:
    """Return the OpenAPI description of a successful response, with an example."""
    return {
        "description": description or "It succeeded.",
        "content": {"application/json": {"example": example}},
    }


def describe(document: Document) -> dict[str, Any]:
    """Return a document as responses show it."""
    return {"id": document.id, "title": document.title, "text": document.text, "metadata": document.metadata}


def json(content: Any, status: int = 200) -> Response:
    """Return a value as a JSON response; NaN becomes null."""
    return Response(
        orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type="application/json"
    )


async def service_of(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


InService = Annotated[Service, Depends(service_of)]  # async, since FastAPI calls other functions in a thread


async def served_of(service: InService, index: IndexQuery = None) -> Served:
    """Return the index that the query names. Raises ProblemError if there is none."""
    return service.served(index, "the address names no index, as in ?index=NAME")


InIndex = Annotated[Served, Depends(served_of)]
