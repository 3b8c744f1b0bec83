"""`POST /v1/evaluate`: measures of runs against judgements, as trec_eval computes them."""

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.responses import Response

from linker.base.errors import InputError
from linker.server.api import evaluating
from linker.server.api.pool import OWNER
from linker.server.api.routes.common import InService, about, check_json, examples, json, routes
from linker.server.fields import Model

router = routes("evaluation")


class Evaluated(Model):
    """The evaluation of one run."""

    run: str = Field(description="Name of the run: the sixth column of its last line.")
    topics: int
    answered: int = Field(description="Judged topics for which the run has a document.")
    ignored: int = Field(description="Topics of the run without judgements.")
    complete: bool
    measures: dict[str, float | str | None]
    undefined: dict[str, int] | None = None
    bounds: dict[str, tuple[float, float]] | None = None
    intervals: dict[str, tuple[float, float]] | None = None
    tied: dict[str, int] | None = None
    per_topic: dict[str, dict[str, bool | float | None]] | None = None


class Evaluations(Model):
    """One result per run."""

    results: dict[str, Evaluated]


EXAMPLES = examples(
    files={"qrels": "q1 0 a 1\n", "runs": {"bm25": "q1 Q0 a 1 2.5 bm25\n"}, "measures": ["map", "MRR"]},
    mappings={
        "qrels": {"q1": {"a": 1}},
        "runs": {"dense": {"q1": {"b": 0.9, "a": 0.4}}},
        "measures": ["nDCG@10"],
    },
)


BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/EvaluateRequest"},
            "examples": EXAMPLES,
        }
    },
}


@router.post("/v1/evaluate", **about(Evaluations, "Evaluate runs"), openapi_extra={"requestBody": BODY})
async def evaluate_runs(request: Request, service: InService) -> Response:
    """Return the measures of each run; nothing is stored."""
    check_json(request)
    # parsed in a thread or another process: blocking the event loop for half a second would affect everybody
    body = await request.body()
    if len(body) <= evaluating.SMALL:
        outcome = await service.heavy.run(lambda: evaluating.answer(body))
    else:
        async with service.aside[OWNER.get()]:
            outcome = await evaluating.in_process(body)
    return _response(outcome)


def _response(outcome: dict[str, Any]) -> Response:
    if "invalid" in outcome:
        raise RequestValidationError(outcome["invalid"])
    if "error" in outcome:
        raise InputError(outcome["error"])
    return json(outcome)
