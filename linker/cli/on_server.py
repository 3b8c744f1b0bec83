"""`linker search --server`: the answer comes from a running server, and nothing is loaded here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linker.base.files import real

if TYPE_CHECKING:
    from indexes.hybrid import Answer, Mode

ANY = Path("-")
POOLED = Path("pooled")
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask the `linker serve --api` that runs there; the token is in --token-file, or in LINKER_TOKEN.",
        show_default=False,
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the token that the server asks for.", show_default=False),
]


def refuse_here(options: Mapping[str, object]) -> None:
    """Raise BadParameter naming the options that are given: a server's answers are as it was configured."""
    given = [
        name for name, value in options.items() if value is not None and value is not False and value != []
    ]
    if given:
        raise typer.BadParameter(
            f"a server does not take {', '.join(given)}: leave them out, or leave out --server"
        )


def on_server(
    url: str,
    token_file: Path | None,
    directory: Path,
    k: int,
    mode: Mode | None,
    where: Sequence[str] | None,
    rerank: Path | None,
    no_rerank: bool,
    phrases: bool,
    threshold: float | None,
    score: float | None,
) -> Callable[[Sequence[str]], Answer]:
    """Return the search by a server, which keeps what is of at least these P(link) and score.

    Raises InputError where the address or the token cannot be used.
    """
    from linker.engine.client import Server
    from linker.scoring.probability import cutting

    if rerank not in (None, POOLED):
        raise typer.BadParameter("a server reranks with the index's own ranker, or with --rerank pooled")
    server = Server.of(url, token_file)
    index = None if directory == ANY else real(directory).name

    def ask(texts: Sequence[str]) -> Answer:
        answer = server.search(
            texts, k, index=index, mode=mode, where=where or (), phrases=phrases,
            rerank="pooled" if rerank else not no_rerank,
        )  # fmt: skip
        if score is not None:
            answer = cutting.by_score(answer, score)
        return answer if threshold is None else cutting.by_probability(answer, threshold)

    return ask
