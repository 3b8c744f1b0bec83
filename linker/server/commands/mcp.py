"""`linker mcp`: indexes as tools for a language model."""

from pathlib import Path
from typing import Annotated

from linker.base.options import Opt


def mcp(
    directories: Annotated[list[Path], Opt("Indexes, or folders of reviews.", "", metavar="DIR...")],
    reviewer: Annotated[str, Opt("Name under which judgements are stored.", metavar="NAME")] = "mcp",
) -> None:
    """Serve indexes to a language model via MCP (stdin, stdout).

    Its tools are search, link, group, find (the next document to judge) and judge. The client starts and ends it.

    Example: linker mcp news.index
    """
    from linker.server.mcp import stdio
    from linker.server.mcp.reviews import Indexes
    from linker.server.mcp.server import make_server

    indexes = Indexes(directories)
    try:
        stdio.serve(make_server(indexes, reviewer))
    finally:
        indexes.close()
