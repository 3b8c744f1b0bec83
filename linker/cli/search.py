"""`linker search`: ranked documents for one text, or a TREC run for many queries."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from linker.cli import completion
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
    note,
    numbers_of,
    one_line,
    print_json,
    warn,
)
from linker.cli.on_server import ServerOption, TokenFile, on_server, refuse_here
from linker.cli.probability import PrecisionPromise, Score, Threshold, cut
from linker.files import STDIO

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from indexes.interface import Matrix
    from linker.evaluation.formats import RunFormat

DEPTH = 100  # candidates of a scorer of pairs


def search(
    directory: Index,
    words: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Search for this text.", show_default=False)
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="TEXT", help="The same as an option.", show_default=False),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Search for all of these: JSONL, BEIR or TSV.", show_default=False),
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
    server: ServerOption = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Search an index with a text or a file of queries.

    A text prints documents, --queries writes a run, in TREC's six-column format unless --format or --out says another.
    With --server, a running `linker serve --api` answers: nothing is loaded here, and DIR is the index's name there
    (- where it serves one).
    """
    given = [*([] if words is None else [words]), *(texts or [])]
    if len(given) > 1:
        raise typer.BadParameter("give one text; for many, --queries FILE")
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
    if server is not None:
        elsewhere = {
            "--encoder": encoder, "--k1": k1, "--b": b, "--k3": k3, "--field-weight": field_weight,
            "--field-b": field_b, "--precision": precision, "--on-failure": on_failure != "degrade",
            "--depth": depth != DEPTH, "--rerank-weight": rerank_weight != 1, "--query-vectors": query_vectors,
        }  # fmt: skip
        refuse_here(elsewhere)
        asked = on_server(
            server, token_file, directory, k, mode, where, rerank, no_rerank, phrases, threshold, score
        )
        _print(asked, text, _asked(queries, None, None), (run_name, out, run_format), as_json)
        return
    if token_file is not None:
        raise typer.BadParameter("--token-file goes with --server")
    from linker.engine import Engine
    from linker.reranking import load_reranker

    engine = Engine.open(directory, encoder=encoder, on_failure=on_failure)
    stored = engine.collection.manifest.bm25
    bm25 = stored.changed(k1, b, k3).weighted(
        numbers_of("--field-weight", field_weight), numbers_of("--field-b", field_b)
    )
    given_vectors = _query_rows(query_vectors) if query_vectors else None
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
        vectors=given_vectors,
    )

    def ask(texts: Sequence[str]) -> Answer:
        return cut(engine, find(texts), precision, threshold, score)

    _print(ask, text, _asked(queries, query_ids, given_vectors), (run_name, out, run_format), as_json)


def _print(
    ask: Callable[[Sequence[str]], Answer],
    text: str | None,
    asked: tuple[list[str], list[str]],
    run: tuple[str, Path | None, RunFormat | None],
    as_json: bool,
) -> None:
    """Print the documents of a text, or write the run of the ids and texts that were `asked`."""
    if text is not None:
        text = text.encode("utf-8", "replace").decode()  # a terminal may send bytes that are not UTF-8
        answer = ask([text])
        _warn(answer)
        _print_hits(text, answer, as_json)
        return
    ids, texts = asked
    answer = ask(texts)
    _warn(answer)
    _write_run(ids, answer, run, as_json)


def _asked(queries: Path | None, ids: Path | None, vectors: Matrix | None) -> tuple[list[str], list[str]]:
    """Return the ids and texts of a file of queries, or the ids of query vectors, which need no texts."""
    if queries is not None:
        from linker.corpora import read_queries

        records = read_queries(queries)
        return [q.id for q in records], [q.text for q in records]
    return ([], []) if vectors is None else (_row_ids(ids, len(vectors)), [])


def _query_rows(path: Path) -> Matrix:
    from linker.vectors import read_matrix

    return read_matrix(path)


def _row_ids(path: Path | None, count: int) -> list[str]:
    """Return the ids of query vectors. Raises InputError where there are not as many, or one repeats."""
    from linker.errors import InputError
    from linker.files import nonempty_lines

    ids = nonempty_lines(path) if path else [str(row) for row in range(count)]
    if len(ids) != count or len(set(ids)) < count:
        raise InputError(f"{path} holds {len(ids):,} ids for {count:,} query vectors, or repeats one")
    return ids


def _warn(answer: Answer) -> None:
    if answer.degraded:
        note(f"degraded: {answer.degraded}")
    for message in answer.notes:
        warn(message)


def _how(answer: Answer) -> dict[str, Any]:
    how = {"mode": answer.mode, "degraded": answer.degraded, "reranked": answer.reranked}
    if answer.ranker:
        how["ranker"] = answer.ranker
    return {**how, "calibration": answer.calibration} if answer.calibration else how


def _said(answer: Answer, number: int) -> list[float | None]:
    """Return P(link) of each hit of a query; None where it is not known."""
    if answer.probabilities is None:
        return [None] * len(answer.hits[number])
    return [None if math.isnan(p) else p for p in answer.probabilities[number].tolist()]


def _no_match(answer: Answer, number: int) -> dict[str, float]:
    return {"no_match": answer.no_match[number]} if answer.no_match else {}


def _print_hits(text: str, answer: Answer, as_json: bool) -> None:
    (hits,) = answer.hits
    results = [(hit.document, hit.score) for hit in hits if hit.document]
    said = _said(answer, 0)
    if as_json:
        listed = [
            {"id": d.id, "score": score}
            | ({"probability": p} if answer.calibration else {})
            | {"title": d.title, "text": d.text, "metadata": d.metadata}
            for (d, score), p in zip(results, said, strict=True)
        ]
        print_json({"query": text, **_how(answer), **_no_match(answer, 0), "hits": listed})
        return
    shown = answer.calibration and not answer.ranker  # a ranker's scores are its probabilities
    for rank, ((document, score), p) in enumerate(zip(results, said, strict=True), start=1):
        probability = f"  {p:.3f}" if shown else ""
        print(f"{rank:3}  {score:9.4f}{probability}  {document.id}  {one_line(document.full_text)}")
    if not results:
        note("nothing found")
    if shown:
        note(f"rank, score, P(link) by {answer.calibration}")
    if answer.ranker:
        note(f"by {answer.ranker}; no relevant document: {answer.no_match[0]:.3f}")


def _write_run(
    ids: list[str], answer: Answer, target: tuple[str, Path | None, RunFormat | None], as_json: bool
) -> None:
    """Write the run of a file of queries; `target` is its name, its file (None: stdout) and its format."""
    run = [(id_, hits.ids, hits.scores) for id_, hits in zip(ids, answer.hits, strict=True)]
    if as_json:
        for number, (query, documents, scores) in enumerate(run):
            described = {**_how(answer), **_no_match(answer, number)}
            said = {"probabilities": _said(answer, number)} if answer.calibration else {}
            print_json({"query": query, **described, "ids": documents, "scores": scores, **said})
        return
    from linker.evaluation.formats import write_run_as

    name, out, kind = target
    write_run_as(out or STDIO, run, kind, name)
    how = f"mode {answer.mode}{f', {answer.ranker}' if answer.ranker else ', reranked' if answer.reranked else ''}"
    if out:
        note(f"{out}: {sum(len(h) for h in answer.hits)} lines for {len(ids)} queries, {how}")
