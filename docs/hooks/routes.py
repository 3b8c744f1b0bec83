"""The reference of the HTTP API, made from its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from linker.server.api.app import DESCRIPTION, ROUTES, described

TITLE = f"""# HTTP

{DESCRIPTION} `linker serve DIR... --api` answers at these paths; the machine-readable document is at `/openapi.json` of
a running service. [A tutorial](../tutorials/engineer.md) shows a session.
"""


def routes_page() -> str:
    """Return the page in Markdown: a section per route, with its parameters and an example of its body."""
    app = FastAPI()
    for module in ROUTES:
        app.include_router(module.router)
    document = described(app)
    routes = {
        f"{method.upper()} {path}": route
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    }
    schemas = document["components"]["schemas"]
    sections = (line for name, route in routes.items() for line in _route(name, route, schemas))
    return "\n".join([TITLE, *sections, *_errors(list(routes.values()))])


def _route(name: str, route: Any, schemas: Any) -> Iterator[str]:
    yield f"## `{name}`\n"
    yield f"{route.get('description') or route.get('summary', '')}\n"
    if parameters := [p for p in route.get("parameters", ()) if p["in"] != "header"]:
        yield "| parameter | in | |\n|---|---|---|"
        yield from (f"| `{p['name']}` | {p['in']} | {_cell(p.get('description', ''))} |" for p in parameters)
        yield ""
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        yield f"Body: `{kind}`\n"
        yield from _fields(content.get("schema", {}), schemas)
        yield from _shown(_example(content, schemas) or _made(content.get("schema", {}), schemas))
    for kind, content in route["responses"].get("200", {}).get("content", {}).items():
        if example := _example(content, schemas):
            yield f"Answer: `{kind}`\n"
            yield from _shown(example)


def _errors(routes: list[Any]) -> Iterator[str]:
    errors = {s: a["description"] for r in routes for s, a in r["responses"].items() if s >= "400"}
    yield "## Errors\n"
    yield "A route answers with those that apply to it, as `application/problem+json`:\n"
    yield "| status | |\n|---|---|"
    yield from (f"| {status} | {_cell(text)} |" for status, text in sorted(errors.items()))
    yield ""


def _fields(schema: Any, schemas: Any) -> Iterator[str]:
    schema = _resolved(schema, schemas)
    if properties := schema.get("properties"):
        yield "| field | | default |\n|---|---|---|"
        for field, about in properties.items():
            default = "required" if field in schema.get("required", ()) else _default(about)
            yield f"| `{field}` | {_cell(about.get('description', ''))} | {default} |"
        yield ""


def _example(content: Any, schemas: Any) -> Any:
    """Return the example that the document has for a whole body."""
    schema = _resolved(content.get("schema", {}), schemas)
    whole = [example.get("value") for example in content.get("examples", {}).values()]
    return next(iter([*whole, *schema.get("examples", ())]), content.get("example"))


def _made(schema: Any, schemas: Any) -> Any:
    """Return an example that is put together from those of the fields."""
    schema = _resolved(schema, schemas)
    if "examples" in schema:
        return schema["examples"][0]
    if "properties" in schema:
        made = {name: _made(about, schemas) for name, about in schema["properties"].items()}
        return {name: value for name, value in made.items() if value not in (None, {}, [])}
    if "items" in schema and (item := _made(schema["items"], schemas)) not in (None, {}):
        return [item]
    return None


def _resolved(schema: Any, schemas: Any) -> Any:
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _shown(example: Any) -> Iterator[str]:
    if example not in (None, {}):
        text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        yield f"```json\n{text.rstrip()}\n```\n"


def _default(about: Any) -> str:
    return f"`{json.dumps(about['default'])}`" if about.get("default") not in (None, "", [], {}) else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
