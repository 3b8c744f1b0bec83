"""`linker serve`: the review workbench in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from linker.base.terminal import note


def serve(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folder of reviews (may be new), one review, or an index; with --api, also several.",
            show_default=False,
        ),
    ],
    api: Annotated[bool, typer.Option("--api", help="Also answer programs: the HTTP API.")] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; one that others can reach needs --token-file or --proxy-header."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Require a token from this file, which is created with a new token if it does not exist. "
            "With --api, a line is TOKEN, or TOKEN SCOPES NAME.",
            show_default=False,
        ),
    ] = None,
    proxy_header: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Header in which the proxy in front of this server names who has signed in; "
            "whoever reaches the port itself can set it.",
            show_default=False,
        ),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also answer to this host name. Repeatable.", show_default=False),
    ] = None,
    rate_limit: Annotated[
        float,
        typer.Option(
            min=0, metavar="NUMBER", help="Requests per second of one client to the API; 0: unlimited."
        ),
    ] = 0,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="How the API logs requests on stderr.")
    ] = "text",
    workers: Annotated[
        int,
        typer.Option(
            min=1, max=256, help="Processes that answer, with --api; several serve the API without the page."
        ),
    ] = 1,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Open the review workbench: judge documents in a browser. With --api, programs can search, too.

    Prints the page's address once it answers. Only this machine can reach it, unless --host says otherwise. Ctrl-C
    ends it; every judgement is stored as it is made.

    Example: linker serve news.index
    """
    if not api and workers > 1:
        raise typer.BadParameter("--workers goes with --api: the page is served by one process")
    if not api and len(directories) > 1:
        raise typer.BadParameter("several directories are served with --api only")
    from linker.server.config import Limits, ServeConfig, has_page
    from linker.server.running import run

    config = ServeConfig.of(
        directories,
        host,
        token_file=token_file,
        proxy_header=proxy_header,
        allowed=tuple(allow_host or ()),
        limits=Limits(rate=rate_limit),
        log_format=log_format,
        page=not api or (workers == 1 and has_page(directories)),
    )
    if config.access.tokens and not api:
        ends = (
            ""
            if config.access.survives
            else "; its folder is read-only, so that sessions end with this process"
        )
        note(f"sign in with the token in {token_file}{ends}")
    run(config, host, port, api=api, open_browser=open_, workers=workers)
