"""`linker search --server`: the answer comes from a running server, and nothing is loaded locally."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from linker.base.errors import UsageError
from linker.base.files import real
from linker.base.options import Opt, options
from linker.cli.options import flagged
from linker.engine.options import Least, SearchOptions

if TYPE_CHECKING:
    from indexes.hybrid import Answer

ANY = Path("-")
POOLED = Path("pooled")
SERVER = "Server"
TAKEN = {"k", "mode", "where", "stored_ranker", "phrases", "threshold", "score"}


# fmt: off
@dataclass(frozen=True, slots=True)
class At:
    """A running server that answers instead of a local index."""

    server: Annotated[str | None, Opt(
        "Ask the `linker serve --api` that runs there; the token is in --token-file, or in LINKER_TOKEN.",
        group=SERVER, metavar="URL")] = None
    token_file: Annotated[Path | None, Opt(
        "File with the token that the server asks for.", group=SERVER, metavar="FILE")] = None

    def __post_init__(self) -> None:
        """Raise UsageError for a token without a server."""
        if self.token_file is not None and self.server is None:
            raise UsageError("`token_file` goes with `server`")
# fmt: on


def refuse_here(*records: Any, **others: object) -> None:
    """Raise BadParameter naming the given options: a server's configuration determines its answers."""
    given = [name for name, value in others.items() if value]
    given += [
        option.name
        for record in records
        for option in options(type(record))
        if option.name not in TAKEN and getattr(record, option.name) != option.default
    ]
    if given:
        names = flagged(", ".join(f"`{name}`" for name in given))
        raise typer.BadParameter(f"a server does not accept {names}: leave them out, or leave out --server")


def on_server(
    at: At, directory: Path, search: SearchOptions, rerank: Path | None, least: Least
) -> "Callable[[Sequence[str]], Answer]":
    """Return a function that searches on a server and keeps the hits that `least` allows.

    Raises InputError if the address or the token cannot be used.
    """
    from linker.engine.client import Server

    if rerank not in (None, POOLED):
        raise typer.BadParameter("a server reranks with the index's own ranker, or with --rerank pooled")
    server = Server.of(at.server or "", at.token_file)
    index = None if directory == ANY else real(directory).name

    def ask(texts: Sequence[str]) -> "Answer":
        where = cast(Sequence[str], search.where or ())
        answer = server.search(
            texts, search.k, index=index, mode=search.mode, where=where, phrases=search.phrases,
            rerank="pooled" if rerank else search.stored_ranker,
        )  # fmt: skip
        return least.kept(answer)

    return ask
