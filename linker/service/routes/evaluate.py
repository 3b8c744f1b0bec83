"""`POST /v1/evaluate`: measures of runs against judgements, as trec_eval computes them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import Field
from starlette.responses import Response

from linker.errors import InputError
from linker.evaluation.evaluator import Resampling, evaluate
from linker.evaluation.reading.trec import read_qrels, read_run
from linker.service.guard import require
from linker.service.routes.common import InService, Model, examples, json, problems, routes

router = routes("evaluation")
MOST_RUNS = 20

Qrels = str | dict[str, dict[str, int]]
Run = str | dict[str, dict[str, float]]


class EvaluateRequest(Model):
    """Judgements and runs, each as the text of a file or as a mapping."""

    qrels: Qrels = Field(
        description="TREC's four columns or BEIR's TSV as text, or topic → document → relevance.",
        examples=["q1 0 a 1\nq1 0 b 0\n", {"q1": {"a": 1, "b": 0}}],
    )
    runs: dict[str, Run] = Field(
        min_length=1,
        max_length=MOST_RUNS,
        description="By name: TREC's six columns as text, or topic → document → score.",
        examples=[
            {"bm25": "q1 Q0 a 1 2.5 bm25\nq1 Q0 b 2 1.5 bm25\n", "dense": {"q1": {"b": 0.9, "a": 0.4}}}
        ],
    )
    measures: list[Annotated[str, Field(max_length=100)]] = Field(
        ["official"],
        max_length=100,
        description="As of `linker evaluate -m`.",
        examples=[["map", "nDCG@10", "MRR"]],
    )
    complete: bool = Field(
        True, description="Average over all judged topics, not only over those in the run."
    )
    level: int = Field(1, ge=1, le=1_000_000, description="Lowest grade that counts as relevant.")
    judged_only: bool = Field(False, description="Ignore unjudged documents.")
    most: int | None = Field(
        None, ge=1, le=10**9, description="Evaluate at most this many documents per topic."
    )
    compat: Literal["trec_eval-9", "trec_eval-10"] = "trec_eval-9"
    per_topic: bool = Field(False, description="Also return the values of each topic.")
    ties: bool = Field(
        False, description="Count ties, and bound each measure over all orders of tied scores."
    )
    intervals: bool = Field(False, description="Add 95% bootstrap confidence intervals.")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Random seed of the bootstrap.")


class Evaluated(Model):
    """One run."""

    run: str = Field(description="The sixth column of its last line.")
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


@router.post(
    "/v1/evaluate",
    response_model=Evaluations,
    responses=problems(),
    summary="Evaluate runs",
    dependencies=[require("read")],
)
async def evaluate_runs(
    request: Annotated[EvaluateRequest, Body(openapi_examples=EXAMPLES)], service: InService
) -> Response:
    """Return the measures of each run; nothing is stored."""
    return await service.pool.run(lambda: json({"results": _results(request)}))


def _results(request: EvaluateRequest) -> dict[str, Any]:
    qrels = _read(request.qrels, "qrels")
    results = {}
    for name, run in request.runs.items():
        evaluation = evaluate(
            qrels,
            _read(run, f"run {name!r}"),
            request.measures,
            complete=request.complete,
            level=request.level,
            judged_only=request.judged_only,
            most=request.most,
            compat=request.compat,
            ties=request.ties,
            intervals=Resampling(seed=request.seed) if request.intervals else None,
        )
        results[name] = evaluation.to_dict(per_topic=request.per_topic)
    return results


def _read(value: Qrels | Run, name: str) -> Any:
    """Return judgements or a run; a string is the text of a file, never a path. Raises InputError."""
    if not isinstance(value, str):
        return value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_text(value, encoding="utf-8", newline="")
        try:
            return (read_qrels if name == "qrels" else read_run)(path)
        except InputError as e:
            raise InputError(str(e).replace(str(path), name)) from None
