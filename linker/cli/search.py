"""`linker search`: ranked documents for one text, or a TREC run for many queries, from an index or a running server."""

# No postponed annotations: the records of options are read from their fields' types.
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from linker.base.errors import UsageError
from linker.base.files import real
from linker.base.options import Opt, options, values
from linker.base.terminal import AsJson, Index
from linker.cli.backup import leading_indexes
from linker.cli.columns import Tables
from linker.cli.options import with_flags
from linker.cli.probability import cut
from linker.cli.search_output import queries_in, query_rows, show
from linker.engine.options import Bm25Options, EncoderOption, Least, SearchOptions

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
        "Search by the `linker serve --api` at this address; its token is in --token-file or LINKER_TOKEN.",
        group=SERVER, metavar="URL")] = None
    token_file: Annotated[Path | None, Opt(
        "File with the token that the server requires.", group=SERVER, metavar="FILE")] = None

    def __post_init__(self) -> None:
        """Raise UsageError for a token without a server."""
        if self.token_file is not None and self.server is None:
            raise UsageError("`token_file` requires `server`")
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
        names = with_flags(", ".join(f"`{name}`" for name in given))
        raise typer.BadParameter(f"a server does not accept {names}: leave them out, or leave out --server")


def on_server(
    at: At, directory: Path, search: SearchOptions, rerank: Path | None, least: Least
) -> "Callable[[Sequence[str]], Answer]":
    """Return a function that searches on a server and keeps the hits that `least` allows.

    Raises InputError if the address or the token is invalid.
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
        return least.cut(answer)

    return ask


def search(
    directory: Index,
    options: SearchOptions,
    least: Least,
    bm25: Bm25Options,
    tables: Tables,
    at: At,
    words: Annotated[
        list[str] | None,
        Opt(
            "More directories, searched together with the first as one index; then the text to search for.",
            "",
            metavar="[DIR]... [TEXT]",
        ),
    ] = None,
    texts: Annotated[list[str] | None, Opt("The text to search for.", "--text", metavar="TEXT")] = None,
    queries: Annotated[
        Path | None,
        Opt("Search for all of these: JSONL, BEIR, TSV, CSV or XLSX; - is stdin.", metavar="FILE"),
    ] = None,
    query_vectors: Annotated[
        Path | None,
        Opt(
            "Query vectors (.npy or FAISS), one row per query; without texts, rank by cosine only.",
            metavar="FILE",
        ),
    ] = None,
    query_ids: Annotated[
        Path | None,
        Opt(
            "Ids of the rows of --query-vectors, one per line [default: those of --queries, else 0, 1, …].",
            metavar="FILE",
        ),
    ] = None,
    run_name: Annotated[str, Opt("Name of the run, in its sixth column.")] = "linker",
    out: Annotated[Path | None, Opt("Write the run here instead of to stdout.", metavar="RUN")] = None,
    run_format: Annotated[
        Literal["trec", "ranx", "pytrec_eval", "parquet", "jsonl"] | None,
        Opt("Format of the run [default: by the name of --out, else trec].", "--format"),
    ] = None,
    encoder: EncoderOption = None,
    rerank: Annotated[
        Path | None,
        Opt(
            "Rerank with this model by `linker rank train` or `linker sts train`, or with linker's own: pooled.",
            metavar="MODEL",
            complete="rerankers",
        ),
    ] = None,
    on_failure: Annotated[
        Literal["degrade", "fail"] | None,
        Opt(
            "If a retriever of a hybrid search is unavailable: answer with the other one and say so, or fail "
            "[default: fail for a run, degrade for a text]."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search indexes with a text or a file of queries.

    Several indexes are searched as one. A text prints documents, --queries writes a run, in TREC's six-column format
    unless --format or --out says otherwise. With --server, a running `linker serve --api` answers: nothing is loaded
    locally, and DIR is the index's name there (- if it serves only one).

    Example: linker search news.index "floods in Valencia" -k 3
    """
    others, plain = ([], words or []) if at.server else leading_indexes(words or [])
    given = [*plain, *(texts or [])]
    text = given[0] if given else None
    _check(given, queries, query_vectors, query_ids)
    if query_vectors and (least.precision, least.threshold) != (None, None):
        raise typer.BadParameter(
            "--precision and --threshold apply only to text queries with the index's own search settings"
        )
    if (out or run_format) and (text is not None or as_json):
        raise typer.BadParameter("--out and --format need --queries, and cannot be combined with --json")
    if least.precision is not None and (options.mode or rerank or bm25 != Bm25Options()):
        raise typer.BadParameter("--precision cannot be combined with --mode, --rerank and BM25 options")
    columns = tables.columns(None if at.server else [directory, *others])
    vectors, records = query_rows(query_vectors, query_ids), queries_in(queries, columns)
    run, whole = (run_name, out, run_format), (on_failure or ("degrade" if text else "fail")) == "fail"
    if at.server is not None:
        refuse_here(options, bm25, least, query_vectors=query_vectors, encoder=encoder)
        show(on_server(at, directory, options, rerank, least), text, records, run, as_json, whole)
        return
    from linker.engine.engine import Engine
    from linker.scoring.reranking import load_reranker

    engine = Engine.open(
        [directory, *others] if others else directory,
        encoder=encoder,
        on_failure="fail" if whole else "degrade",
    )
    options = replace(
        options,
        bm25=bm25.changed(engine.collection.manifest.bm25) if bm25 != Bm25Options() else None,
        reranker=load_reranker(rerank) if rerank else None,
    )
    if vectors and records is None and text is None:
        records = [(id_, None) for id_ in vectors[1]]

    def ask(texts: Sequence[str]) -> "Answer":
        answer = engine.search(texts, vectors=None if vectors is None else vectors[0], **values(options))
        return cut(engine, answer, least)

    show(ask, text, records, run, as_json, whole)


def _check(given: list[str], queries: Path | None, vectors: Path | None, ids: Path | None) -> None:
    """Raise BadParameter unless there is one text, or there are queries."""
    if len(given) > 1:
        raise typer.BadParameter("give one text, after the directories; for many, --queries FILE")
    if (given and queries) or not (given or queries or vectors):
        raise typer.BadParameter("give a text or --queries (not both), or --query-vectors")
    if ids and (vectors is None or queries or given):
        raise typer.BadParameter("--query-ids requires --query-vectors, without --queries or a text")
