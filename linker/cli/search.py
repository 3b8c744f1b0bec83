"""`linker search`: ranked documents for one text, or a TREC run for many queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linker.cli.common import AsJson, EncoderOption, Index, ModeOption, Where, note, one_line, print_json

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from linker.engine import Engine


def search(
    directory: Index,
    text: Annotated[str | None, typer.Option(help="Search for this text.", show_default=False)] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Search for many: JSONL, BEIR or TSV.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents for each query.")] = 10,
    mode: ModeOption = None,
    where: Where = None,
    run_name: Annotated[str, typer.Option(help="Sixth column of the run.")] = "linker",
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Write the run here, not to stdout.", show_default=False),
    ] = None,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:
    """Search an index: --text prints documents, --queries writes a run in TREC's six columns."""
    if (text is None) == (queries is None):
        raise typer.BadParameter("give either --text or --queries")
    if out and (text is not None or as_json):
        raise typer.BadParameter("--out takes the run of --queries, without --json")
    from linker.engine import Engine

    engine = Engine.open(directory, encoder=encoder)
    if text is not None:
        text = text.encode("utf-8", "replace").decode()  # what the terminal sent may be no UTF-8
        answer = engine.search(text, k, mode=mode, where=where or ())
        _warn(answer)
        _print_hits(engine, text, answer, as_json)
    elif queries is not None:
        from linker.corpora import read_queries

        wanted = read_queries(queries)
        answer = engine.search([q.text for q in wanted], k, mode=mode, where=where or ())
        _warn(answer)
        _write_run([q.id for q in wanted], answer, run_name, out, as_json)


def _warn(answer: Answer) -> None:
    if answer.degraded:
        note(f"degraded: {answer.degraded}")


def _print_hits(engine: Engine, text: str, answer: Answer, as_json: bool) -> None:
    (hits,) = answer.hits
    found = [(engine.document(id_), score) for id_, score in zip(hits.ids, hits.scores.tolist(), strict=True)]
    if as_json:
        listed = [
            {"id": d.id, "score": score, "title": d.title, "text": d.text, "metadata": d.metadata}
            for d, score in found
        ]
        print_json({"query": text, "mode": answer.mode, "degraded": answer.degraded, "hits": listed})
        return
    for rank, (document, score) in enumerate(found, start=1):
        print(f"{rank:3}  {score:9.4f}  {document.id}  {one_line(document.full_text)}")
    if not found:
        note("nothing found")


def _write_run(ids: list[str], answer: Answer, name: str, out: Path | None, as_json: bool) -> None:
    run = [(id_, hits.ids, hits.scores) for id_, hits in zip(ids, answer.hits, strict=True)]
    if as_json:
        for query, documents, scores in run:
            value: dict[str, Any] = {"query": query, "mode": answer.mode, "degraded": answer.degraded}
            print_json(value | {"ids": documents, "scores": scores})
        return
    from linker.evaluation.trec import run_lines, write_run

    if out is None:
        sys.stdout.writelines(run_lines(run, name))
        return
    write_run(out, run, name)
    note(f"{out}: {sum(len(h) for h in answer.hits)} lines for {len(ids)} queries, mode {answer.mode}")
