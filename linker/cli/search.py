"""`linker search`: ranked documents for one text, or a TREC run for many queries."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linker.cli import completion
from linker.cli.columns import (
    Delimiter,
    Encoding,
    HeaderRow,
    IdColumn,
    MakeIds,
    Sheet,
    TextColumn,
    TitleColumn,
    columns_from,
)
from linker.cli.common import (
    K1,
    K3,
    AsJson,
    B,
    EncoderOption,
    FieldB,
    FieldWeight,
    Index,
    ModeOption,
    Where,
    numbers_of,
)
from linker.cli.join import leading_indexes
from linker.cli.on_server import ServerOption, TokenFile, on_server, refuse_here
from linker.cli.probability import PrecisionPromise, Score, Threshold, cut
from linker.cli.search_output import queries_in, query_rows, show

if TYPE_CHECKING:
    from indexes.hybrid import Answer

DEPTH = 100  # candidates of a scorer of pairs


def search(
    directory: Index,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR]... [TEXT]",
            help="More directories, which are searched as one index with the first; search for this text.",
            show_default=False,
        ),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="TEXT", help="The same as an option.", show_default=False),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Search for all of these: JSONL, BEIR, TSV, CSV or XLSX; - is stdin.",
            show_default=False,
        ),
    ] = None,
    query_vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Search by these vectors (.npy or FAISS), a row per text or query; alone, by cosine.",
            show_default=False,
        ),
    ] = None,
    query_ids: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ids of the rows of --query-vectors, one per line [default: those of --queries, else 0, 1, …].",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents per query.")] = 10,
    mode: ModeOption = None,
    where: Where = None,
    phrases: Annotated[
        bool,
        typer.Option("--phrases", help='Only documents that have the words in "quotes" one after the other.'),
    ] = False,
    precision: PrecisionPromise = None,
    threshold: Threshold = None,
    score: Score = None,
    run_name: Annotated[str, typer.Option(help="Name of the run, in its sixth column.")] = "linker",
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Write the run here instead of to stdout.", show_default=False),
    ] = None,
    run_format: Annotated[
        Literal["trec", "ranx", "pytrec_eval", "parquet", "jsonl"] | None,
        typer.Option(
            "--format",
            help="Format of the run [default: by the name of --out, else trec].",
            show_default=False,
        ),
    ] = None,
    encoder: EncoderOption = None,
    k1: K1 = None,
    b: B = None,
    k3: K3 = None,
    field_weight: FieldWeight = None,
    field_b: FieldB = None,
    rerank: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Rerank with this model by `linker rank train` or `linker sts train`, or with linker's own: pooled.",
            show_default=False,
            autocompletion=completion.rerankers,
        ),
    ] = None,
    no_rerank: Annotated[
        bool, typer.Option("--no-rerank", help="Do without the ranker that is stored in the index.")
    ] = False,
    depth: Annotated[
        int, typer.Option(min=1, help="Candidates that a scorer of pairs reads per query, at least -k.")
    ] = DEPTH,
    rerank_weight: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Weight of a scorer of pairs in the score; below 1, z-scores are mixed."
        ),
    ] = 1.0,
    on_failure: Annotated[
        Literal["degrade", "fail"],
        typer.Option(
            help="If a retriever of a hybrid search is unavailable: answer with the other one and say so, or fail."
        ),
    ] = "degrade",
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    make_ids: MakeIds = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    server: ServerOption = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Search indexes with a text or a file of queries.

    Several indexes are searched as one.
    A text prints documents, --queries writes a run, in TREC's six-column format unless --format or --out says another.
    With --server, a running `linker serve --api` answers: nothing is loaded here, and DIR is the index's name there
    (- where it serves one).
    """
    others, plain = ([], words or []) if server else leading_indexes(words or [])
    given = [*plain, *(texts or [])]
    if len(given) > 1:
        raise typer.BadParameter("give one text, after the directories; for many, --queries FILE")
    text = given[0] if given else None
    if (text is not None and queries) or (text is None and not queries and not query_vectors):
        raise typer.BadParameter("give either a text or --queries, or --query-vectors")
    if query_ids and (query_vectors is None or queries or text is not None):
        raise typer.BadParameter("--query-ids names the rows of --query-vectors, where there is no --queries")
    if query_vectors and (precision, threshold) != (None, None):
        raise typer.BadParameter(
            "--precision and --threshold hold for the index's own way to search, by texts"
        )
    if (out or run_format) and (text is not None or as_json):
        raise typer.BadParameter("--out and --format take the run of --queries, without --json")
    own = (mode, k1, b, k3, field_weight or None, field_b or None, rerank)
    if precision is not None and any(option is not None for option in own):
        raise typer.BadParameter("--precision holds for the index's own way to search: leave its options out")
    columns = columns_from(
        None if server else [directory, *others],
        id_column,
        text_column,
        title_column,
        make_ids,
        encoding,
        delimiter,
        sheet,
        header_row,
    )
    vectors, records = query_rows(query_vectors, query_ids), queries_in(queries, columns)
    if server is not None:
        elsewhere = {
            "--query-vectors": query_vectors,
            "--encoder": encoder, "--k1": k1, "--b": b, "--k3": k3, "--field-weight": field_weight,
            "--field-b": field_b, "--precision": precision, "--on-failure": on_failure != "degrade",
            "--depth": depth != DEPTH, "--rerank-weight": rerank_weight != 1,
        }  # fmt: skip
        refuse_here(elsewhere)
        asked = on_server(
            server, token_file, directory, k, mode, where, rerank, no_rerank, phrases, threshold, score
        )
        show(asked, text, records, (run_name, out, run_format), as_json)
        return
    if token_file is not None:
        raise typer.BadParameter("--token-file goes with --server")
    from linker.engine.engine import Engine
    from linker.scoring.reranking import load_reranker

    engine = Engine.open(
        [directory, *others] if others else directory, encoder=encoder, on_failure=on_failure
    )
    stored = engine.collection.manifest.bm25
    bm25 = stored.changed(k1, b, k3).weighted(
        numbers_of("--field-weight", field_weight), numbers_of("--field-b", field_b)
    )
    find = functools.partial(
        engine.search,
        k=k,
        mode=mode,
        where=where or (),
        bm25=bm25 if any(option is not None for option in (k1, b, k3, field_weight, field_b)) else None,
        reranker=load_reranker(rerank) if rerank else None,
        depth=depth,
        weight=rerank_weight,
        stored_ranker=not no_rerank,
        phrases=phrases,
        vectors=None if vectors is None else vectors[0],
    )

    if vectors and records is None and text is None:
        records = [(id_, None) for id_ in vectors[1]]

    def ask(texts: Sequence[str]) -> Answer:
        return cut(engine, find(texts), precision, threshold, score)

    show(ask, text, records, (run_name, out, run_format), as_json)
