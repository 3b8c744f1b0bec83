"""Progress: documents read and found, the stopping rule's advice, the audit; Stop: the choices once the rule is met."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from linker.review.interface import Progress
from linker.review.language import ReaderLanguage
from linker.review.learning.doubts import Doubt
from linker.review.ledger import Entry
from linker.review.rows.states import counts
from linker.review.session import note_of, note_of_rows
from linker.server.page import matching
from linker.server.page.matching import is_rows
from linker.server.page.rendering import go, page, translate
from linker.server.page.reviews import InReview
from linker.server.shelf import Opened

WIDTH, HEIGHT = 640, 260  # size of the plot, in SVG units
POINTS = 320  # maximum number of points of the curve
TICKS = 5  # approximate number of ticks per axis
BREAK = 300.0  # seconds without a judgement that count as a break
router = APIRouter(prefix="/p/{project}")
SEEN = "stop_seen"  # name of the setting with the last occasion on which somebody chose to continue


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its position and label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """The plot: `line` has the curve's points; `band`: top and height of the range of possible totals."""

    width: int
    height: int
    line: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    band: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Pace:
    """One reviewer's reading: judgements other than skips, relevant ones, and reads per hour, without breaks."""

    reviewer: str
    read: int
    found: int
    per_hour: float | None


def curve(found: Sequence[int], most: int | None, language: ReaderLanguage) -> DrawnCurve:
    """Return the plot of how many relevant documents had been `found` after each document read.

    `most`: the certified upper bound on the number of relevant documents; None without a certificate.
    """
    reads = len(found)
    x_ticks, right = _ticks(reads)
    y_ticks, top = _ticks(max(found[-1], most or 0, 1))

    def x(value: float) -> float:
        return round(value / right * WIDTH, 1)

    def y(value: float) -> float:
        return round(HEIGHT - value / top * HEIGHT, 1)

    step = max(1, math.ceil(reads / POINTS))
    places = sorted({0, *range(step - 1, reads, step), reads - 1})
    line = " ".join(["0," + str(HEIGHT), *(f"{x(i + 1)},{y(found[i])}" for i in places)])
    band = (y(most), round(y(found[-1]) - y(most), 1)) if most else None
    return DrawnCurve(
        WIDTH,
        HEIGHT,
        line,
        tuple(Tick(x(value), language.number(value)) for value in x_ticks),
        tuple(Tick(y(value), language.number(value)) for value in y_ticks),
        band,
    )


def _ticks(largest: int) -> tuple[list[int], int]:
    """Return round numbers from 0, and the end of the axis: the last of these numbers, which is at least `largest`."""
    power = 10 ** max(0, math.floor(math.log10(max(largest / TICKS, 1))))
    step = next((m * power for m in (1, 2, 5) if m * power * TICKS >= largest), 10 * power)
    count = max(1, math.ceil(largest / step))
    return [i * step for i in range(count + 1)], count * step


def paces(entries: Iterable[Entry]) -> list[Pace]:
    """Return the pace of every reviewer: the time between judgements counts, except for breaks of five minutes."""
    entries = list(entries)
    undone = {entry.undoes for entry in entries if entry.undoes is not None}
    times: dict[str, list[float]] = {}
    standing: dict[str, dict[tuple[str, str], bool]] = {}
    for entry in entries:
        judgement = entry.judgement
        if entry.undoes is not None or entry.number in undone or judgement.verdict == "skip":
            continue
        standing.setdefault(judgement.reviewer, {})[judgement.seed, judgement.id] = judgement.relevant
        times.setdefault(judgement.reviewer, []).append(datetime.fromisoformat(judgement.time).timestamp())
    return [
        Pace(reviewer, len(verdicts), sum(verdicts.values()), per_hour(times[reviewer]))
        for reviewer, verdicts in sorted(standing.items())
    ]


def per_hour(times: Sequence[float]) -> float | None:
    """Return judgements per hour from their times in seconds; None if the period is too short to tell."""
    ordered = sorted(times)
    gaps = [b - a for a, b in itertools.pairwise(ordered) if b - a < BREAK]
    seconds = sum(gaps)
    return len(gaps) / seconds * 3600 if len(gaps) >= TICKS and seconds > 0 else None


@router.get("/stop", name="stop")
def show_choices(request: Request, opened: InReview) -> Response:
    """Show the choices at any time; a review of rows has none, since it ends when every row is decided."""
    if is_rows(opened):
        return go(request, "rows", opened.project)
    return stop_page(request, opened)


@router.post("/stop/leave", name="leave_stop")
def leave(request: Request, opened: InReview) -> Response:
    """Continue judging; the choices are shown again when the rule is met on another occasion."""
    opened.ledger.set(SEEN, _occasion(opened, opened.review.progress()))
    return go(request, "judge", opened.project)


def is_due(opened: Opened, progress: Progress) -> bool:
    """Return whether the rule is met on an occasion on which nobody has chosen to continue yet."""
    is_met = (
        progress.phase != "audit" and progress.read < progress.population and bool(opened.review.enough())
    )
    return is_met and opened.ledger.settings.get(SEEN) != _occasion(opened, progress)


def _occasion(opened: Opened, progress: Progress) -> str:
    """Return a name for the occasion of stopping: the number wanted, the estimate, or an audit; for the last two, each
    further relevant document begins a new occasion."""
    until, left = opened.review.settings.until, progress.stop.left
    if until and progress.found >= until:
        return "until"
    if left is None or progress.stop.due:
        return f"estimated {progress.found}"
    return f"audited {progress.found} {opened.ledger.settings.get('audit_now')}"


def doubts_of(request: Request, opened: Opened) -> list[Doubt] | None:
    """Return the verdicts for a second look; if reviewers judge blind, this reader's. None: too few were judged."""
    found = opened.once("doubts", opened.ledger.judgements(), opened.review.doubts)
    if found is None or not opened.review.settings.double:
        return found
    return [doubt for doubt in found if doubt.judgement.reviewer == request.state.session.reviewer]


def stop_page(request: Request, opened: Opened, last: object = None) -> Response:
    """Return the page of choices; `last` is the last judgement, which can be undone here too."""
    review = opened.review
    progress = review.progress()
    values = {
        "progress": progress, "settings": review.settings, "unread": progress.population - progress.read,
        "enough": review.enough(), "offer": review.offer(), "doubts": len(doubts_of(request, opened) or ()),
        "note": note_of(review), "confidence": 1 - review.settings.rule_options.get("alpha", 0.05),
        "last": last,
    }  # fmt: skip
    return page(request, "stop.html", values, project=opened.project)


@router.get("/progress", name="progress")
def show(request: Request, opened: InReview) -> Response:
    """Show the review's numbers and its curve."""
    progress = opened.review.progress()
    left = progress.stop.left
    most = None if left is None else progress.found + left
    rows = matching.rows_of(opened) if matching.is_rows(opened) else []
    values = {
        "rows": counts(rows) if rows else None, "note": note_of_rows(rows, len(opened.review.population.rows)),
        "states": matching.STATE_NAMES, "progress": progress, "settings": opened.review.settings,
        "enough": opened.review.enough(), "most": most, "audit": opened.review.offer().size,
        "curve": curve(progress.curve, most, translate(request)) if progress.curve else None,
        "by_language": opened.review.languages(), "paces": paces(opened.ledger.history()),
    }  # fmt: skip
    return page(request, "progress.html", values, project=opened.project)


@router.post("/progress/audit", name="audit")
def begin(request: Request, opened: InReview) -> Response:
    """Begin the audit: draw at random from the unread documents from now on."""
    opened.review.begin_audit()
    return go(request, "judge", opened.project)


@router.post("/progress/resume", name="resume")
def resume(request: Request, opened: InReview) -> Response:
    """Return from the audit to the queue."""
    opened.review.resume()
    return go(request, "judge", opened.project)
