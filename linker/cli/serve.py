"""`linker serve`: the review workbench in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linker.cli.common import note


def serve(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of reviews (may be new), one review, or an index.", show_default=False
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; one that others reach needs --token-file or --proxy-header."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ask for the token in this file; it is made, with a new token, if there is none.",
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
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Open the review workbench: judge documents in a browser.

    Prints the page's address once it answers. Only this machine reaches it, unless --host says otherwise. Ctrl-C ends
    it; every judgement is stored as it is made.
    """
    from linker.web.config import ServeConfig
    from linker.web.server import run

    config = ServeConfig.of(
        directory, host, token_file=token_file, proxy_header=proxy_header, allowed=tuple(allow_host or ())
    )
    if config.token:
        note(f"sign in with the token in {token_file}")
    run(config, host, port, open_browser=open_)
