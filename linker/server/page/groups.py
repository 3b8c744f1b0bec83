"""The groups of a review's documents: a list and a timeline, single groups, and people's changes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from linker.review.exporting.own import Added, write_cells, write_own
from linker.review.exporting.rows import Cell
from linker.review.grouped import APART, MOVED, TOGETHER, Story
from linker.review.interface import Judgement
from linker.server.page import grouping, running
from linker.server.page.export import own_table, own_tables, send
from linker.server.page.grouping import PAGE, Look, Order, View, ledger_of
from linker.server.page.rendering import go, message, page, translate
from linker.server.page.reviews import InReview, Reader, Short
from linker.server.page.seeds import take
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/groups")
CHANGED = message("The groups have changed meanwhile: nothing was stored. Look at them again.")

Ids = Annotated[Sequence[str], Form()]
Start = Annotated[int, Query(ge=0)]


@router.get("", name="groups")
def show(
    request: Request, opened: InReview, order: Order = "", look: Look = "", start: Start = 0
) -> Response:
    """Show the groups, newest first, or the form that starts grouping."""
    job = running.last(request, opened.project, "group")
    if job is not None and not job.has_ended:
        return go(request, "job", opened.project, task="group")
    return listing(request, opened, View(order, look, start))


@router.post("", name="make_groups")
def make(request: Request, opened: InReview, days: Short = "") -> Response:
    """Start grouping the documents; people's changes are kept."""
    try:
        most = float(days.replace(",", ".")) if days.strip() else None
    except ValueError:
        most = math.nan
    if most is not None and not 0 <= most < math.inf:
        return listing(request, opened, View(), message("Enter a number of days, such as 30."))
    spec: dict[str, Any] = {"corpus": {"index": str(opened.project.index)}, "same": [], "different": []}
    spec |= {"days": most, "precision": None}
    spec |= {"out": str(opened.project.groups), "keep": grouping.edited_ids(opened)}
    running.start(request, opened.project, "group", spec)
    return go(request, "job", opened.project, task="group")


@router.post("/merge", name="merge_groups")
def merge(
    request: Request, opened: InReview, reader: Reader, groups: Annotated[Sequence[int], Form()] = ()
) -> Response:
    """Merge several groups into one."""
    stories = grouping.needed(opened)
    chosen = [story for number in dict.fromkeys(groups) if (story := stories.get(number))]
    if len(chosen) < 2 or len(chosen) < len(set(groups)):
        text = message("Choose two groups or more.") if len(chosen) == len(set(groups)) else CHANGED
        return listing(request, opened, View(), text)
    first, *others = (story.representative for story in chosen)
    ledger_of(opened).add_all(
        Judgement(first, other, "relevant", reader.reviewer, tags=(TOGETHER,)) for other in others
    )
    return _group(request, opened, chosen[0].number)


@router.post("/undo", name="undo_group")
def undo(request: Request, opened: InReview, reader: Reader, back: Annotated[int, Form()] = 0) -> Response:
    """Take back this reviewer's last change of a group."""
    last = grouping.last_edit(opened, reader.reviewer)
    if last is not None:
        ledger_of(opened).take_back(lambda judgement: judgement == last)
    return _group(request, opened, back)


@router.get("/file", name="groups_file")
def download(
    request: Request, opened: InReview, file: Annotated[str, Query(max_length=500)] = "", format: str = "xlsx"
) -> Response:
    """Send the uploaded `file` back with groups in additional columns or, without `file`, a table of all groups."""
    stories = grouping.needed(opened)
    if format not in ("xlsx", "csv"):
        raise HTTPException(404)
    source = own_table(opened.project, file) if file else None
    names = [translate(request).text(text) for text in grouping.COLUMNS.values()]
    cells = grouping.cells_of(opened, stories)

    def write(path: Path) -> None:
        if source:
            write_own(*source, Added(names, cells), path)
        else:
            _write(opened, path, ["id", *names, "text"], cells)

    stem = file.removesuffix(".gz").rpartition(".")[0] or opened.project.key
    return send(f"{stem}-groups.{format}", write)


@router.get("/one", name="group")
def story(request: Request, opened: InReview, number: int, start: Start = 0) -> Response:
    """Show a group with its documents."""
    return _story(request, opened, number, start)


@router.post("/one", name="change_group")
def change(
    request: Request,
    opened: InReview,
    reader: Reader,
    number: int,
    what: Short,
    ids: Ids = (),
    to: Short = "",
) -> Response:
    """Split a group at its weakest link, remove documents from it, or move them to another group."""
    stories = grouping.needed(opened)
    group = stories.get(number)
    if group is None:
        return listing(request, opened, View(), CHANGED)
    inside = {item.id for item in group.items}
    leaving = [*group.leaving] if what == "split" else [id_ for id_ in dict.fromkeys(ids) if id_ in inside]
    if not leaving:
        return _story(request, opened, number, error=message("Choose documents of the group first."))
    if what == "move":
        other = stories.get(int(to)) if to.isdecimal() and len(to) < 10 else None
        if other is None or other is group:
            return _story(request, opened, number, error=message("Name the group to move them to."))
        edits = [
            Judgement(other.representative, id_, "relevant", reader.reviewer, tags=(MOVED,))
            for id_ in leaving
        ]
    else:
        stays = _staying(group, leaving)
        if not stays:
            return _story(request, opened, number, error=message("One document must stay in the group."))
        edits = [Judgement(stays, leaving[0], "not", reader.reviewer, tags=(APART, *leaving))]
    ledger_of(opened).add_all(edits)
    return _group(request, opened, number)


@router.post("/one/seeds", name="group_seeds")
def seeds(request: Request, opened: InReview, reader: Reader, number: int) -> Response:
    """Add the distinct texts of a group as seeds, to find everything else about its story."""
    group = grouping.needed(opened).get(number)
    if group is None:
        return listing(request, opened, View(), CHANGED)
    ids = [item.id for item in group.items if item.near_copy_of is None and item.id in opened.engine]
    take(opened, map(opened.engine.document, ids))
    return go(request, "seeds", opened.project)


def _staying(story: Story, leaving: list[str]) -> str:
    """Return the document that represents a group once others have left, or an empty string if all leave."""
    rest = [item.id for item in story.items if item.id not in set(leaving)]
    return story.representative if story.representative in rest else next(iter(rest), "")


def listing(request: Request, opened: Opened, view: View, error: str = "") -> Response:
    """Return the page of all groups."""
    stories = grouping.stories_of(opened)
    values: dict[str, Any] = {"stories": stories, "view": view, "step": PAGE}
    if stories is not None:
        listed = stories.ordered(view.order)[view.start : view.start + PAGE]
        dated = any(s.dates[0] for s in listed)
        values |= {
            "count": len(stories.listed), "inside": sum(len(s.items) for s in stories.listed), "dated": dated,
            "rows": [grouping.as_row(opened, s) for s in listed], "last": _last(request, opened),
            "timeline": grouping.timeline(listed) if view.look and dated else None, "width": grouping.WIDTH,
            "is_old": opened.engine.collection.manifest.generation != stories.made.generation,
            "levels": grouping.LEVELS, "check": grouping.check_of(opened, stories),
            "missed": grouping.missed_of(opened, stories),
            "own": own_tables(opened.project),
        }  # fmt: skip
    return page(request, "groups.html", values, project=opened.project, error=error, within="groups")


def _story(request: Request, opened: Opened, number: int, start: int = 0, error: str = "") -> Response:
    stories = grouping.needed(opened)
    group = stories.get(number)
    if group is None:
        raise HTTPException(404)
    numbers = [story.number for story in stories.listed]
    at = numbers.index(number) if number in numbers else -1
    weak = [
        grouping.members(opened, group, [item for item in group.items if item.id == id_])
        for id_ in (group.weakest or ())[:2]
    ]
    values = {
        "story": group, "row": grouping.as_row(opened, group), "start": start, "step": PAGE,
        "members": grouping.members(opened, group, group.items[start : start + PAGE]), "last": _last(request, opened),
        "weak": [members[0] for members in weak if members], "previous": numbers[at - 1] if at > 0 else 0,
        "next": numbers[at + 1] if 0 <= at < len(numbers) - 1 else 0,
        "others": [
            (s.number, grouping.title_of(opened, s)) for s in stories.listed[: grouping.OFFERED] if s is not group
        ],
    }  # fmt: skip
    return page(request, "group.html", values, project=opened.project, error=error)


def _write(opened: Opened, out: Path, head: list[str], cells: Mapping[str, Sequence[Cell]]) -> None:
    rows: list[Sequence[Cell]] = [
        head,
        *([id_, *of, opened.engine.document(id_).text] for id_, of in cells.items() if id_ in opened.engine),
    ]
    write_cells(rows, out, "groups")


def _last(request: Request, opened: Opened) -> bool:
    reviewer = request.state.session.reviewer
    return bool(reviewer) and grouping.last_edit(opened, reviewer) is not None


def _group(request: Request, opened: Opened, number: int) -> Response:
    """Redirect to a group, or to the list if no group has this number."""
    if grouping.needed(opened).get(number) is None:
        return go(request, "groups", opened.project)
    return go(request, "group", opened.project, number=number)
