"""`linker serve`: the review workbench in a browser."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from linker.base.options import Opt
from linker.base.terminal import note


def serve(
    directories: Annotated[list[Path], Opt(
        "Folder of reviews (may be new), one review, or an index; with --api, several are allowed.", "",
        metavar="DIR...")],
    api: Annotated[bool, Opt("Also serve the HTTP API for programs.", "--api")] = False,
    host: Annotated[str, Opt(
        "Address to listen on; one that others can reach needs --token-file or --proxy-header.")] = "127.0.0.1",
    port: Annotated[int, Opt("Port to listen on; 0: any that is free.", low=0, high=65535)] = 8000,
    token_file: Annotated[Path | None, Opt(
        "Require a token from this file, which is created with a new token if it does not exist. "
        "With --api, a line is TOKEN, or TOKEN SCOPES NAME.", metavar="FILE")] = None,
    proxy_header: Annotated[str, Opt(
        "Header in which the proxy in front of this server names the signed-in user; "
        "anyone who can reach the port directly can set it.", metavar="NAME", default=False)] = "",
    allow_host: Annotated[list[str] | None, Opt(
        "Also answer to this host name. Repeatable.", metavar="NAME")] = None,
    rate_limit: Annotated[float, Opt(
        "API requests per second that one client may send; 0: unlimited.", low=0, metavar="NUMBER")] = 0,
    log_format: Annotated[Literal["text", "json"], Opt("How the API logs requests on stderr.")] = "text",
    workers: Annotated[int, Opt(
        "Number of server processes, with --api; if more than 1, there is no page.", low=1, high=256)] = 1,
    open_: Annotated[bool, Opt("Open the page in the browser.", "--open")] = False,
) -> None:  # fmt: skip
    """Open the review workbench: judge documents in a browser. With --api, programs can search, too.

    Prints the page's address once it answers. Only this machine can reach it, unless --host says otherwise. Ctrl-C
    ends it; every judgement is stored as it is made. Variables can take the place of options: LINKER_SERVE_PORT
    that of --port.

    Example: linker serve news.index
    """
    if not api and workers > 1:
        raise typer.BadParameter("--workers requires --api: one process serves the page")
    if not api and len(directories) > 1:
        raise typer.BadParameter("serving several directories requires --api")
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
