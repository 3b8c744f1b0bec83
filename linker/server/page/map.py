"""The map of a review's documents: computed by a job, drawn by the browser."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from indexes.interface import IndexesError
from linker.review.project import Project
from linker.server.jobs.points import LEAST, MOST, load
from linker.server.page import running
from linker.server.page.judging import verdicts
from linker.server.page.rendering import go, page
from linker.server.page.reviews import InReview

router = APIRouter()
LONGEST = 600  # maximum number of characters of a text shown next to the map


@router.get("/p/{project}/map", name="map")
def show(request: Request, opened: InReview) -> Response:
    """Show the map, or the button that starts drawing it."""
    job = running.last(request, opened.project, "map")
    if job is not None and not job.has_ended:
        return go(request, "job", opened.project, task="map")
    manifest = opened.engine.collection.manifest
    values = {"documents": manifest.documents, "most": MOST, "least": LEAST, "is_old": False, "points": 0}
    values["has_vectors"] = manifest.encoder is not None
    drawn = opened.project.map
    if drawn.is_file():
        ids, _, generation = load(drawn)
        values |= {"points": len(ids), "is_old": generation != manifest.generation}
    return page(request, "map.html", values, project=opened.project)


@router.post("/p/{project}/map", name="draw_map")
def draw(request: Request, opened: InReview) -> Response:
    """Start drawing the map."""
    project: Project = opened.project
    spec = {"index": str(project.index), "out": str(project.map)}
    running.start(request, project, "map", spec)
    return go(request, "job", project, task="map")


@router.get("/p/{project}/map/points", name="map_points")
def points(request: Request, opened: InReview) -> Response:
    """Return the map as it is stored: a line of JSON with the ids, then little-endian uint16 coordinates [n, 2]."""
    load(opened.project.map)
    return Response(opened.project.map.read_bytes(), media_type="application/octet-stream")


@router.get("/p/{project}/map/verdicts", name="map_verdicts")
def judged(request: Request, opened: InReview) -> Response:
    """Return the verdict on every judged document by id, and "seed" for seeds."""
    seeds = {seed.document: "seed" for seed in opened.ledger.seeds if seed.document}
    return JSONResponse(verdicts(opened, request.state.session.reviewer) | seeds)


@router.get("/p/{project}/map/text", name="map_text")
def text(request: Request, opened: InReview, id: str) -> Response:
    """Return the beginning of a document's text."""
    try:
        document = opened.engine.document(id)
    except IndexesError:
        return JSONResponse({"title": "", "text": ""}, 404)
    shown = document.text[:LONGEST] + (" …" if len(document.text) > LONGEST else "")
    return JSONResponse({"title": document.title, "text": shown})
