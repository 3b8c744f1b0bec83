"""The output of `linker search`: documents for a text, a run for queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexes.showing import one_line
from linker.base.files import STDIO
from linker.base.terminal import note, print_json, warn
from linker.cli.options import with_flags

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from indexes.interface import Hits, Matrix
    from linker.corpora import Columns
    from linker.evaluation.formats import RunFormat

Record = tuple[str, str | None]  # a query's id and text; the text of a query vector may be None


def show(
    ask: Callable[[Sequence[str]], Answer],
    text: str | None,
    records: list[Record] | None,
    run: tuple[str, Path | None, RunFormat | None],
    as_json: bool,
    whole: bool,
) -> None:
    """Search for `text` and print its documents, or search for `records` and write their run.

    `run`: the run's name, file and format. Raises BackendUnavailableError if the answer must be `whole` but is
    degraded, as the answer of a running server can be.
    """
    if text is not None:
        text = text.encode("utf-8", "replace").decode()  # a terminal may send bytes that are not UTF-8
        answer = _report(ask([text]), whole)
        _print_hits(text, answer, as_json)
    elif records is not None:
        answer = _report(ask([text for _, text in records if text is not None]), whole)
        _write_run([id_ for id_, _ in records], answer, run, as_json)


def queries_in(path: Path | None, columns: Columns) -> list[Record] | None:
    """Return the queries of a file, if given; the file's format is printed on stderr."""
    if path is None:
        return None
    from linker.cli.columns import describe
    from linker.corpora import read_queries

    describe([path], columns, queries=True)
    return [(query.id, query.text) for query in read_queries(path, columns)]


def query_rows(path: Path | None, ids_file: Path | None) -> tuple[Matrix, list[str]] | None:
    """Return query vectors, float32 [n, dim], and their ids: those in `ids_file`, or row numbers from 0.

    Raises InputError if there are not as many ids as vectors, or an id repeats.
    """
    if path is None:
        return None
    from linker.base.errors import InputError
    from linker.base.files import nonempty_lines
    from linker.corpora.vectors import read_matrix

    vectors = read_matrix(path)
    ids = nonempty_lines(ids_file) if ids_file else [str(row) for row in range(len(vectors))]
    if len(ids) != len(vectors) or len(set(ids)) < len(ids):
        raise InputError(
            f"{ids_file}: expected {len(vectors):,} different ids, one per query vector, got {len(ids):,} ids"
        )
    return vectors, ids


def _report(answer: Answer, whole: bool) -> Answer:
    """Return an answer after reporting anything unusual. Raises BackendUnavailableError if it is not `whole`."""
    if answer.degraded and whole:
        from indexes.interface import BackendUnavailableError

        raise BackendUnavailableError(
            f"{answer.degraded}; to accept incomplete answers, give --on-failure degrade"
        )
    if answer.degraded:
        note(with_flags(f"degraded: {answer.degraded}"))
    for message in answer.notes:
        warn(with_flags(message))
    return answer


def _how(answer: Answer) -> dict[str, Any]:
    how = {"mode": answer.mode, "degraded": with_flags(answer.degraded), "reranked": answer.reranked}
    if answer.ranker:
        how["ranker"] = answer.ranker
    if answer.notes:
        how["notes"] = [with_flags(note) for note in answer.notes]
    return {**how, "calibration": answer.calibration} if answer.calibration else how


def _probabilities(hits: Hits) -> list[float | None]:
    """Return P(link) of each hit; None if it is not known."""
    if hits.probabilities is None:
        return [None] * len(hits)
    return [None if math.isnan(p) else p for p in hits.probabilities.tolist()]


def _no_match(hits: Hits) -> dict[str, float]:
    return {} if hits.no_match is None else {"no_match": hits.no_match}


def _print_hits(text: str, answer: Answer, as_json: bool) -> None:
    (hits,) = answer.hits
    results = [(hit.document, hit.score) for hit in hits if hit.document]
    probabilities = _probabilities(hits)
    if as_json:
        listed = [
            {"id": d.id, "score": score}
            | ({"probability": p} if answer.calibration else {})
            | {"title": d.title, "text": d.text, "metadata": d.metadata}
            for (d, score), p in zip(results, probabilities, strict=True)
        ]
        print_json({"query": text, **_how(answer), **_no_match(hits), "hits": listed})
        return
    shown = answer.calibration and not answer.ranker  # a ranker's scores are its probabilities
    for rank, ((document, score), p) in enumerate(zip(results, probabilities, strict=True), start=1):
        probability = f"  {p:.3f}" if shown else ""
        print(f"{rank:3}  {score:9.4f}{probability}  {document.id}  {one_line(document.full_text, 100)}")
    if not results:
        note("nothing found")
    if shown:
        note(f"rank, score, P(link) by {answer.calibration}")
    if answer.ranker:
        note(f"by {answer.ranker}; no relevant document: {hits.no_match:.3f}")


def _write_run(
    ids: list[str], answer: Answer, target: tuple[str, Path | None, RunFormat | None], as_json: bool
) -> None:
    """Write the run of a file of queries; `target` is its name, its file (None: stdout) and its format."""
    run = [(id_, hits.ids, hits.scores) for id_, hits in zip(ids, answer.hits, strict=True)]
    if as_json:
        for query, hits in zip(ids, answer.hits, strict=True):
            known = {"probabilities": _probabilities(hits)} if answer.calibration else {}
            columns = {"ids": hits.ids, "scores": hits.scores, **known}
            print_json({"query": query, **_how(answer), **_no_match(hits), **columns})
        return
    from linker.evaluation.formats import write_run_as

    name, out, kind = target
    write_run_as(out or STDIO, run, kind, name)
    how = f"mode {answer.mode}{f', {answer.ranker}' if answer.ranker else ', reranked' if answer.reranked else ''}"
    if out:
        note(f"{out}: {sum(len(h) for h in answer.hits)} lines for {len(ids)} queries, {how}")
