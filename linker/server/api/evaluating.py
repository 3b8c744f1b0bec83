"""Evaluate runs: small requests in the server, others in a separate process, which ends with the request."""

import dataclasses
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from indexes.errors import IndexesError
from linker.base.errors import InputError, LinkerError
from linker.evaluation.evaluator import Resampling, evaluate
from linker.evaluation.options import EvaluateOptions
from linker.evaluation.reading.trec import read_qrels, read_run
from linker.server.api import children
from linker.server.fields import Model, option

MOST_RUNS = 20
SMALL = 64 << 10  # bytes; a smaller request is not worth a process of its own

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
        description="Names of measures, as for `linker evaluate -m`.",
        examples=[["map", "nDCG@10", "MRR"]],
    )
    complete: bool = option(
        EvaluateOptions,
        "complete",
        description="Average over all judged topics, not only over those in the run.",
    )
    level: int = option(EvaluateOptions, "level", le=1_000_000)
    judged_only: bool = option(EvaluateOptions, "judged_only")
    most: int | None = option(EvaluateOptions, "most", le=10**9)
    compat: Literal["trec_eval-9", "trec_eval-10"] = option(EvaluateOptions, "compat")
    per_topic: bool = Field(False, description="Also return the values of each topic.")
    ties: bool = option(EvaluateOptions, "ties")
    intervals: bool = Field(False, description="Add 95% bootstrap confidence intervals.")
    seed: int = Field(0, ge=0, le=2**32 - 1, description="Random seed of the bootstrap.")


def answer(body: bytes) -> dict[str, Any]:
    """Return the response to a request: its `results`, an `error`, or why its body is `invalid`."""
    try:
        return {"results": _results(EvaluateRequest.model_validate(orjson.loads(body)))}
    except orjson.JSONDecodeError:
        return {"invalid": [{"type": "json_invalid", "loc": ["body"], "msg": "not JSON"}]}
    except ValidationError as e:
        return {"invalid": children.trim([{**each, "loc": ["body", *each["loc"]]} for each in e.errors()])}
    except (LinkerError, IndexesError) as e:
        return {"error": str(e)}


async def in_process(body: bytes) -> dict[str, Any]:
    """Run `answer` in a separate process, which is killed if the caller gives up."""
    found: dict[str, Any] = orjson.loads(await children.run("linker.server.api.evaluating", body=body))
    return found


def _results(request: EvaluateRequest) -> dict[str, Any]:
    qrels = _read(request.qrels, "qrels")
    options = request.model_dump(include={f.name for f in dataclasses.fields(EvaluateOptions)})
    intervals = Resampling(seed=request.seed) if request.intervals else None
    results = {}
    for name, run in request.runs.items():
        evaluation = evaluate(
            qrels, _read(run, f"run {name!r}"), request.measures, intervals=intervals, **options
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


if __name__ == "__main__":
    os.nice(children.NICE)
    sys.stdout.buffer.write(orjson.dumps(answer(sys.stdin.buffer.read())))
