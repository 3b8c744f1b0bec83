"""Renders a template and its values as a page, in the reader's language; every value is escaped."""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from linker.base.version import __version__
from linker.review import wording
from linker.review.language import LANGUAGES, ReaderLanguage, language
from linker.review.project import Project
from linker.server.page.reasons import explain
from linker.server.page.reviews import shelf_of, workspace_of
from linker.server.page.sessions import CSRF_FIELD

FOLDER = Path(__file__).parent
message = wording.message
SWAP = "x-linker-swap"  # header of requests from the page's script, which replaces <main> with the response's


# methods of a ReaderLanguage that templates use as filters
FILTERS = ("number", "percent", "floor_percent", "time", "ago", "day", "sentence")

# The words for verdicts.
NAMES = {
    "relevant": message("relevant"),
    "not": message("not relevant"),
    "maybe": message("maybe"),
    "skip": message("skipped"),
    "mixed": message("reviewers disagree"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of a review's navigation: its title, and its pages by route and title (it links to the first).

    `within`: routes of further pages that belong to it. `needs_index`: whether it needs indexed documents.
    """

    title: str
    pages: tuple[tuple[str, str], ...]
    within: tuple[str, ...] = ()
    needs_index: bool = True


# In the order in which a review uses them.
PLACES = (
    Place(
        message("Files"),
        (("project", message("Files")), ("seeds", message("Seeds"))),
        ("setup",),
        needs_index=False,
    ),
    Place(message("Judge"), (("judge", message("Judge")),), ("rows", "judged", "doubts")),
    Place(
        message("Results"),
        (
            ("export", message("Download")),
            ("progress", message("Progress")),
            ("compare", message("Compare")),
            ("map", message("Map")),
            ("groups", message("Groups")),
            ("links", message("Links")),
        ),
        ("stop", "group", "check_groups"),
    ),
    Place(message("Settings"), (("settings", message("Settings")),)),
)
NOT_READY = message("Add files first: there are no documents yet.")


def page(
    request: Request,
    template: str,
    values: Mapping[str, Any] | None = None,
    *,
    project: Project | None = None,
    error: str = "",
    status: int = 0,
    within: str = "",
) -> HTMLResponse:
    """Return a page. `error`, explained in the page's language, is shown at the top, or where the template puts it.

    `within`: the route of the page that the navigation shows as current, by default the request's own.

    In addition to `values`, templates get `request`, `session`, `language`, `project`, `places`, `csrf` and `error`.
    """
    session = request.state.session
    shared = {
        "request": request, "session": session, "language": session.language, "languages": LANGUAGES,
        "project": project, "places": _places(request, project, within) if project else [], "csrf_field": CSRF_FIELD,
        "size": shelf_of(request).size(project) if project else 0,
        "error": explain(error, session.language).replace(f"{workspace_of(request).directory}/", ""),
        "version": __version__,
    }  # fmt: skip
    text = _environment(session.language.code).get_template(template).render(**shared, **(values or {}))
    return HTMLResponse(text, status or (400 if error else 200))


def is_swap(request: Request) -> bool:
    """Return whether the page's script made the request: it gets the next page, and a browser a redirect (303)."""
    return SWAP in request.headers


def address(request: Request, route: str, **values: Any) -> str:
    """Return the path of a route by its name, without the host, which may differ behind a proxy."""
    return str(request.app.state.path_for(route, **values))


def go(request: Request, route: str, project: Project, **query: Any) -> RedirectResponse:
    """Return a redirect to a page of a review, with these values in its query."""
    path = address(request, route, project=project.key)
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


@functools.cache
def _environment(code: str) -> Environment:
    chosen = language(code)
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_translations(chosen.translations, newstyle=True)  # type: ignore[attr-defined]
    environment.filters |= {name: getattr(chosen, name) for name in FILTERS}
    environment.filters["explained"] = functools.partial(explain, language=chosen)
    environment.globals |= {"static": static, "address": address, "verdict_names": NAMES}
    return environment


@functools.cache
def static(name: str) -> str:
    """Return the address of a static file with a hash of its content, so that browsers may cache it."""
    digest = hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:12]}"


def _places(request: Request, project: Project, within: str) -> list[dict[str, Any]]:
    """Return a review's places: title, path, whether it is current, why it cannot be used yet, and pages of each."""
    text = translate(request).text
    page_path = address(request, within, project=project.key) if within else request.url.path
    entries = []
    for place in PLACES:
        paths = [address(request, route, project=project.key) for route, _ in place.pages]
        further = [address(request, route, project=project.key) for route in place.within]
        # the tab of a page is also current on pages below its path
        nearest = max((path for path in paths if f"{page_path}/".startswith(f"{path}/")), key=len, default="")
        current = "page" if nearest == page_path else "true"
        entries.append(
            {
                "title": text(place.title),
                "path": paths[0],
                "here": page_path in paths + further,
                "off": text(NOT_READY) if place.needs_index and not project.ready else "",
                "pages": [
                    (text(title), path, current if path == nearest else "")
                    for (_, title), path in zip(place.pages, paths, strict=True)
                ]
                if project.ready and len(paths) > 1
                else [],
            }
        )
    return entries


def translate(request: Request) -> ReaderLanguage:
    """Return the language of the page."""
    chosen: ReaderLanguage = request.state.session.language
    return chosen
