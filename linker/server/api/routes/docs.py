"""`/docs`: interactive documentation by Swagger UI, whose files are installed, so that it needs no network."""

from pathlib import Path
from typing import Literal

from starlette.responses import FileResponse, HTMLResponse, Response

from indexes.errors import importing
from linker.server.api.routes.common import routes

router = routes("docs")

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>linker: HTTP API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
"""
START = 'SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", validatorUrl: null})\n'


@router.get("/docs", include_in_schema=False)
async def page() -> Response:
    """Return the page, which reads `/openapi.json`. Reading needs no token; requests sent from the page may."""
    return HTMLResponse(PAGE)


@router.get("/docs/start.js", include_in_schema=False)
async def start() -> Response:
    """Return the script that shows the documentation."""
    return Response(START, media_type="text/javascript")


@router.get("/docs/{name}", include_in_schema=False)
async def file(name: Literal["swagger-ui-bundle.js", "swagger-ui.css"]) -> Response:
    """Return a file of Swagger UI."""
    with importing("The interactive documentation", "serve"):
        import fastapi_offline
    return FileResponse(Path(fastapi_offline.__file__).with_name("static") / name)
