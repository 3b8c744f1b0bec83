"""A small review, and a headless browser: pages are fetched, and their forms are filled in and submitted."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from linker.engine.building import BuildOptions, build
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.server.config import ServeConfig
from linker.server.page.app import create_app
from linker.server.page.sessions import REVIEWER
from linker.server.shelf import Opened
from tests.helpers import write_json_lines

BASE = "http://127.0.0.1:8000"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}${8*8}"
FLOODS = "Heavy rain flooded the streets of Valencia"


def records() -> Iterator[dict[str, Any]]:
    """Yield the documents: about floods, about votes, a copy, an attack, and one that runs from right to left."""
    for i in range(12):
        yield {
            "id": f"f{i}",
            "text": f"{FLOODS} on day {i}, said witness number {i}",
            "place": f"quarter {i}",
        }
        yield {
            "id": f"v{i}",
            "text": f"Voters in region {i} elected a new parliament after {i} debates",
            "day": i,
        }
    yield {"id": "copy", "text": f"RT @ana: {FLOODS} on day 3, said witness number 3"}
    yield {"id": "hostile", "title": HOSTILE, "text": f"{FLOODS} {HOSTILE}", HOSTILE: HOSTILE}
    yield {"id": "rtl", "text": "غمرت الأمطار الغزيرة شوارع Valencia"}


def ledger(folder: Path) -> Ledger:
    """Open the ledger of the review "floods"."""
    return Ledger(folder / "floods" / "review.sqlite")


def make_review(folder: Path, name: str = "Floods", *, seeds: bool = True) -> str:
    """Make a review in a folder of reviews and return its key."""
    project = Workspace(folder).create(name)
    source = folder / ".documents.jsonl"
    write_json_lines(source, records())
    build([source], project.index, BuildOptions())
    if seeds:
        with Ledger(project.ledger) as judged:
            judged.put_seeds([Seed("s1", f"{FLOODS}, and the river rose", "Floods in Valencia")])
    return project.key


def client(
    folder: Path, config: ServeConfig | None = None, base: str = BASE, name: str = "tess"
) -> TestClient:
    """Return a reviewer's browser for the page of a folder; it follows redirects and keeps cookies."""
    return browser_of(create_app(config or ServeConfig.of(folder)), name, base)


def opened(app: Any, key: str) -> Opened:
    """Return a review as an application holds it."""
    found: Opened = app.state.shelf.review(app.state.workspace.project(key))
    return found


def browser_of(app: Any, name: str, base: str = BASE) -> TestClient:
    """Return another browser for the same page."""
    return TestClient(app, base_url=base, cookies={REVIEWER: name} if name else None)


class _Forms(HTMLParser):
    """Collects the forms of a page: their addresses and the values that a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self._text: str | None = None
        self._select: str | None = None
        self._apart: list[tuple[str, str, str]] = []  # form, name and value of fields outside their form

    def close(self) -> None:
        super().close()
        for form_, name, value in self._apart:
            (found,) = [f for f in self.forms if f["id"] == form_]
            found["values"][name] = value

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(
                {
                    "action": values.get("action", ""),
                    "method": values.get("method", "get"),
                    "id": values.get("id", ""),
                    "values": {},
                }
            )
        if tag == "input" and "form" in values and "checked" in values:
            self._apart.append((values["form"], values["name"], values.get("value", "on")))
            return
        if not self.forms or "name" not in values:
            if tag == "option" and self._select and "selected" in values:
                self.forms[-1]["values"][self._select] = values.get("value", "")
            return
        fields = self.forms[-1]["values"]
        if tag == "input" and not (values.get("type") in ("checkbox", "radio") and "checked" not in values):
            fields[values["name"]] = values.get(
                "value", "on" if values.get("type") in ("checkbox", "radio") else ""
            )
        if tag == "textarea":
            fields[values["name"]] = ""
            self._text = values["name"]
        if tag == "select":
            self._select = values["name"]

    def handle_data(self, data: str) -> None:
        if self._text:
            self.forms[-1]["values"][self._text] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text = None
        if tag == "select":
            self._select = None


def form(text: str, action: str, number: int = 0) -> dict[str, Any]:
    """Return the values of a page's form whose address ends in `action`, the first or another one."""
    parser = _Forms()
    parser.feed(text)
    parser.close()
    found = [f for f in parser.forms if f["action"].endswith(action)]
    values: dict[str, Any] = found[number]["values"]
    return values


def forms(text: str) -> list[dict[str, Any]]:
    """Return all forms of a page: action, method, values."""
    parser = _Forms()
    parser.feed(text)
    parser.close()
    return parser.forms
