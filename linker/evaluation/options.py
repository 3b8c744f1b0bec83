"""The options of `evaluate`, declared once for the command line and HTTP. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Annotated, Literal

from linker.base.options import Opt


# fmt: off
@dataclass(frozen=True, slots=True)
class Counting:
    """What counts: the topics and grades, and the version of trec_eval to agree with."""

    complete: Annotated[bool, Opt(
        "Average over all judged topics (trec_eval's -c; the default), or over those in the run.",
        "-c/ --complete/--answered-only", default=False)] = True
    level: Annotated[int, Opt("Lowest grade that counts as relevant.", "-l --level", low=1)] = 1
    compat: Annotated[Literal["trec_eval-9", "trec_eval-10"], Opt(
        "trec_eval to agree with: 9 compares scores as float32, 10 as float64.")] = "trec_eval-9"


@dataclass(frozen=True, slots=True)
class EvaluateOptions(Counting):
    """What counts, and which documents of a run are evaluated."""

    judged_only: Annotated[bool, Opt("Ignore unjudged documents.", "-J --judged-only")] = False
    most: Annotated[int | None, Opt(
        "Evaluate at most this many documents per topic.", "-M --max-docs", low=1)] = None
    ties: Annotated[bool, Opt(
        "Count ties, and bound each measure over all orders of tied scores.", "--ties")] = False
