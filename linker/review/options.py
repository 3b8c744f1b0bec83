"""The options of `find`, `calibrate` and `watch`, declared once for command line and Python. Imports nothing heavy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from linker.base.errors import InputError, UsageError
from linker.base.options import Opt
from linker.engine.options import WHERE, EncoderOption, ModeOption

if TYPE_CHECKING:
    from indexes.interface import Document
    from linker.base.progress import Progress
    from linker.corpora import Columns
    from linker.engine.engine import Engine
    from linker.review.interface import Candidate, Seed
    from linker.review.session import Answer
    from linker.review.watching import PostMatch

Paths: TypeAlias = str | Path | Sequence[str | Path]
Seeds: TypeAlias = str | Path | Sequence[str] | Mapping[str, str]
STOPPING, STATIC, OUTPUT, POSTS = "When to stop", "Seeds with links of their own", "Output", "Posts"


@dataclass(frozen=True, slots=True)
class Question:
    """A question for a judge: is this document relevant to the seed?

    The candidate has the document's rank, score, P(link) if known, and phase; "audit" means drawn at random.
    """

    seed: "Seed"
    document: "Document"
    candidate: "Candidate"


# fmt: off
@dataclass(frozen=True, slots=True)
class FindOptions:
    """All options of `find`. `judge` answers the questions; `columns`: how to read a seed file."""

    directory: Annotated["Paths | Engine", Opt(
        "Directory of the index, elastic+https://HOST:PORT/NAME, or several that are searched as one.", "",
        metavar="DIR...", read=list[Path])]
    seeds: Annotated[Seeds, Opt("Seed texts: JSONL, BEIR, TSV, CSV, XLSX; TXT: one story.", metavar="FILE", read=Path)]
    judge: "Callable[[Question], Answer] | None" = None
    _: KW_ONLY
    judgements: Annotated[str | Path | Mapping[str, Mapping[str, float]] | None, Opt(
        "Take judgements from this file instead of asking.", metavar="QRELS", read=Path)] = None
    until: Annotated[int | None, Opt("Stop after this many relevant documents.", group=STOPPING, low=1)] = None
    per_seed: Annotated[bool, Opt(
        "Count --until separately for each seed.", "--per-seed/--no-per-seed", STATIC)] = False
    static: Annotated[bool, Opt(
        "Every seed has links of its own: merge their rankings, without feedback.", "--static/--no-static",
        STATIC)] = False
    order: Annotated[Literal["feedback", "probability", "z", "rank"] | None, Opt(
        "With --static, how rankings are merged. [default: probability if known, else z]", group=STATIC,
        read=Literal["probability", "z", "rank"])] = None
    target: Annotated[float | None, Opt(
        "Target recall of the stopping rule.", group=STOPPING, default="0.9")] = None
    stop: Annotated[str | None, Opt(
        "Stopping rule: urn, row, … (see docs/stopping.md).", group=STOPPING, metavar="RULE")] = None
    audit: Annotated[bool, Opt(
        "Once the rule is met, draw unread documents at random to bound how many are missed.",
        "--audit/--no-audit", STOPPING)] = False
    max_read: Annotated[int | None, Opt("Stop after this many judgements.", group=STOPPING, low=1)] = None
    threshold: Annotated[float | None, Opt(
        "Leave out documents with a lower P(link).", group=STATIC, low=0, high=1)] = None
    score: Annotated[float | None, Opt(
        "Leave out documents with a lower score.", group=STATIC)] = None
    ledger: Annotated[str | Path | None, Opt(
        "Store the judgements here [default: the seed file's name + .review.sqlite]", group=OUTPUT,
        metavar="FILE")] = None
    out: Annotated[str | Path | None, Opt(
        "Write the relevant documents here: .csv, .xlsx, .jsonl, .qrels …", group=OUTPUT, metavar="FILE")] = None
    reviewer: Annotated[str, Opt("Name of the reviewer.")] = ""
    mode: ModeOption = None
    where: Annotated[str | Sequence[str] | None, WHERE] = None
    encoder: EncoderOption = None
    columns: "Columns | None" = None
    seed: Annotated[int, Opt("Random seed.")] = 0
    progress: "Progress | None" = None

    def __post_init__(self) -> None:
        """Raise UsageError if an option is given without another one that it needs."""
        alone = self.per_seed or self.order or self.threshold is not None or self.score is not None
        if alone and not self.static:
            raise UsageError("`per_seed`, `order`, `threshold` and `score` need `static`")
        if self.per_seed and self.until is None:
            raise UsageError("`per_seed` needs `until`")


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """All options of `calibrate`: it learns from `queries` with `qrels`, or from a review's `ledger`."""

    directory: Annotated["str | Path | Engine", Opt(
        "Directory of the index, or elastic+https://HOST:PORT/NAME (or opensearch+…).", "", metavar="DIR", read=Path)]
    queries: Annotated[Paths | Mapping[str, str] | None, Opt(
        "Judged queries: JSONL, BEIR or TSV. Repeatable.", metavar="FILE", read=list[Path])] = None
    qrels: Annotated[Paths | Mapping[str, Mapping[str, float]] | None, Opt(
        "Judgements of the queries. Repeatable.", metavar="FILE", read=list[Path])] = None
    _: KW_ONLY
    ledger: Annotated[str | Path | None, Opt(
        "Learn from the judgements of this review instead.", metavar="FILE")] = None
    dev_share: Annotated[float, Opt(
        "Share of the queries held out, to evaluate and to certify precision.", low=0, high=0.9)] = 0.5
    seed: Annotated[int, Opt("Random seed of the split of the queries.", low=0)] = 0
    out: Annotated[str | Path | None, Opt(
        "Write the calibration here instead of into the index.", metavar="FOLDER")] = None
    encoder: EncoderOption = None
    progress: "Progress | None" = None

    def __post_init__(self) -> None:
        """Raise UsageError unless judgements are given in one of the two ways."""
        if (self.queries is None) != (self.qrels is None) or (self.queries is None) == (self.ledger is None):
            raise UsageError("give either `queries` with `qrels`, or `ledger`")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchOptions:
    """How posts are matched, and where the matches are written. `columns`: how to read posts."""

    threshold: Annotated[float | None, Opt(
        "Keep links of at least this P(link).", low=0, high=1, default="0.5")] = None
    precision: Annotated[float | None, Opt(
        "Keep the best links, as many as P(link) guarantees this precision for.", low=0, high=1)] = None
    score: Annotated[float | None, Opt("Keep documents of at least this score.")] = None
    k: Annotated[int, Opt("Seeds examined per post.", "-k", low=1)] = 10
    mode: ModeOption = None
    where: Annotated[str | Sequence[str] | None, WHERE] = None
    follow: Annotated[bool, Opt("Keep reading as the file grows, until Ctrl-C.", "--follow -f", POSTS)] = False
    out: Annotated[str | Path | None, Opt(
        "Append the links here, as JSON lines, instead of to stdout.", group=OUTPUT, metavar="FILE")] = None
    resume: Annotated[bool, Opt("Continue after the last post whose links are in --out.", group=OUTPUT)] = False
    quarantine: Annotated[str | Path | None, Opt(
        "Write invalid lines here [default: the name of --out or the posts + .quarantine.jsonl].", group=OUTPUT,
        metavar="FILE")] = None
    encoder: EncoderOption = None
    columns: "Columns | None" = None
    progress: "Progress | None" = None

    def __post_init__(self) -> None:
        """Raise InputError for mutually exclusive options."""
        if self.precision is not None and (self.threshold is not None or self.mode is not None):
            raise InputError(
                "`precision` sets its own threshold, for the index's own search mode: leave the other options out"
            )


@dataclass(frozen=True, slots=True)
class WatchOptions(MatchOptions):
    """All options of `watch`: `each` is called with every match."""

    seeds: "Paths | Engine"
    posts: "str | Path | Iterable[Document]"
    each: "Callable[[PostMatch], object] | None" = None
