"""Run the API, with the page where one directory is served that has one."""

from __future__ import annotations

from starlette.types import ASGIApp

from indexes.store import manifest as manifests
from linker.review.project import Workspace
from linker.service import logs
from linker.service.app.making import Joined, service_app
from linker.service.config import ServiceConfig
from linker.service.tokens import page_token
from linker.web.app import create_app
from linker.web.config import ServeConfig
from linker.web.server import serve

GRACE = 30  # seconds for requests that are under way when the server ends


def run(config: ServiceConfig, host: str, port: int, *, open_browser: bool = False) -> None:
    """Serve until a signal. Raises InputError or IndexesError where an index or the port cannot be used."""
    logs.configure(config.log_format)
    page = _page(config)
    serve(
        application(config, page), host, port, proxied=bool(config.proxy_header), learner=page is not None,
        open_browser=open_browser, grace=GRACE,
    )  # fmt: skip


def application(config: ServiceConfig, page: ServeConfig | None) -> ASGIApp:
    """Return the API, beside the page of a folder if there is one. Raises InputError or IndexesError."""
    api = service_app(config)
    return Joined(api, create_app(page)) if page else api


def _page(config: ServiceConfig) -> ServeConfig | None:
    """Return how the page is served: where one directory is given, which is not a mere folder of indexes."""
    if len(config.directories) > 1:
        return None
    (directory,) = config.directories
    workspace = Workspace(directory)
    if not (directory / manifests.NAME).is_file() and any(p.folder is None for p in workspace.projects):
        return None
    token = page_token(config.token_file) if config.token_file else ""
    hosts = config.hosts
    return ServeConfig(directory, hosts.names, token, config.proxy_header, hosts.any_address)
