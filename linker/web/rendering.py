"""From a template and its values to a page, in the reader's language; every value is escaped."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import NoMatchFound

from linker.review.project import Project
from linker.version import __version__
from linker.web.language import LANGUAGES, Language, language
from linker.web.sessions import CSRF_FIELD

FOLDER = Path(__file__).parent
SWAP = "x-linker-swap"  # a request of our script, which puts <main> of the answer in place of the page's


def message(text: str) -> str:
    """Return the text itself; it marks a text for translation that is looked up later."""
    return text


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of a review's navigation: the name of a route that takes `project`, and its title."""

    route: str
    title: str


# In the order of the work; those whose routes do not exist are left out.
NAVIGATION = (
    Link("search", message("Search")),
    Link("seeds", message("Seeds")),
    Link("judge", message("Judge")),
    Link("progress", message("Progress")),
    Link("links", message("Links")),
    Link("compare", message("Compare")),
    Link("map", message("Map")),
    Link("export", message("Export")),
)


def page(
    request: Request,
    template: str,
    values: Mapping[str, Any] | None = None,
    *,
    project: Project | None = None,
    error: str = "",
    status: int = 0,
) -> HTMLResponse:
    """Return a page. `error` is one sentence, which stands at its top, or where the template puts it.

    A template knows `request`, `session`, `language`, `project`, `navigation`, `csrf` and `error` besides `values`.
    """
    session = request.state.session
    text = (
        _environment(session.language.code)
        .get_template(template)
        .render(
            request=request,
            session=session,
            language=session.language,
            languages=LANGUAGES,
            project=project,
            navigation=_navigation(request, project) if project else [],
            csrf_field=CSRF_FIELD,
            error=error,
            version=__version__,
            **(values or {}),
        )
    )
    return HTMLResponse(text, status or (400 if error else 200))


def is_swap(request: Request) -> bool:
    """Whether our script asks: it takes the next page at once, where a browser is sent there (303)."""
    return SWAP in request.headers


def address(request: Request, route: str, **values: Any) -> str:
    """Return the path of a route by its name, without host: a proxy may show another one."""
    return str(request.app.url_path_for(route, **values))


def address_if(request: Request, route: str, **values: Any) -> str:
    """Return the path of a route as `address` does, or an empty text where there is no such page."""
    try:
        return address(request, route, **values)
    except NoMatchFound:
        return ""


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
    environment.filters |= {
        "number": chosen.number,
        "percent": chosen.percent,
        "floor_percent": chosen.floor_percent,
        "time": chosen.time,
        "sentence": chosen.sentence,
    }
    environment.globals |= {"static": static, "address": address, "address_if": address_if}
    return environment


@functools.cache
def static(name: str) -> str:
    """Return the address of a static file with a hash of its content, so that browsers may keep it."""
    digest = hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:12]}"


def _navigation(request: Request, project: Project) -> list[tuple[str, str, bool]]:
    """Return title, path and whether it is the present page, of every page that there is."""
    entries = []
    text = request.state.session.language.text
    for link in NAVIGATION:
        try:
            path = address(request, link.route, project=project.key)
        except NoMatchFound:
            continue
        here = request.url.path == path or request.url.path.startswith(f"{path}/")
        entries.append((text(link.title), path, here))
    return entries


def translate(request: Request) -> Language:
    """Return the language of the page."""
    chosen: Language = request.state.session.language
    return chosen
