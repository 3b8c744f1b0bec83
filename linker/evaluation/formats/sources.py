"""Judgements and runs from any source: a path, a mapping, a sequence of triples, a data frame."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from indexes.interface import Hits
from linker.base import datasets
from linker.base.errors import InputError
from linker.evaluation.formats import files
from linker.evaluation.reading.columns import PathLike
from linker.evaluation.reading.entries import Entries
from linker.evaluation.reading.sources import Frame, as_qrels, as_run

Warn = Callable[[str], None]


# A topic's documents: a score for each, the Hits of a search, or only their ids, best first.
Ranked: TypeAlias = Mapping[str, float] | Hits | Sequence[str]
# Triples (topic, document, score), or objects with `query_id`, `doc_id` and `score`, such as ir_measures' ScoredDoc.
Triples: TypeAlias = Iterable[tuple[Any, ...]]
RunLike: TypeAlias = PathLike | Entries[float] | Mapping[str, Ranked] | Triples | Frame
QrelsLike: TypeAlias = PathLike | Entries[int] | Mapping[str, Mapping[str, float]] | Triples | Frame


def load_run(run: RunLike) -> Entries[float]:
    """Return the run in a file or another value of `RunLike`. Raises InputError if it is malformed or empty."""
    if isinstance(run, str | os.PathLike):
        return files.read_run_file(Path(run))
    if isinstance(run, Mapping) and not isinstance(run, Entries):
        return as_run({topic: _scored(ranked) for topic, ranked in run.items()})
    return as_run(_nested(run, "run", "score"))


def load_qrels(qrels: QrelsLike, warn: Warn | None = None) -> Entries[int]:
    """Return the judgements in a file, BEIR folder, `ir_datasets:ID`, or another value of `QrelsLike`.

    Raises the same InputErrors as `load_run`. With `warn`, repeated lines of a TREC file are dropped with a warning.
    """
    if isinstance(qrels, str | os.PathLike):
        if datasets.is_name(qrels):
            return as_qrels(datasets.qrels(qrels))
        path = Path(qrels)
        return files.read_qrels_file(qrels_in(path) if path.is_dir() else path, warn)
    return as_qrels(_nested(qrels, "qrels", "relevance"))


def _scored(ranked: Any) -> Any:
    """Return a topic's documents with their scores; a list of ids gets descending scores."""
    if isinstance(ranked, Hits):
        return dict(zip(ranked.ids, ranked.scores.tolist(), strict=True))
    if isinstance(ranked, Sequence) and not isinstance(ranked, str | bytes):
        if len(set(ranked)) < len(ranked):
            raise InputError("run: a topic lists a document twice")
        return {id_: float(len(ranked) - rank) for rank, id_ in enumerate(ranked)}
    return ranked


def _nested(value: Any, kind: str, number: str) -> Any:
    if isinstance(value, Mapping | Entries) or hasattr(value, "columns") or not isinstance(value, Iterable):
        return value
    nested: dict[Any, dict[Any, Any]] = {}
    for entry in value:
        topic, document, figure = _triple(entry, kind, number)
        known = nested.setdefault(topic, {})
        if document in known:
            raise InputError(f"{kind}: document {document!r} occurs twice for topic {topic!r}")
        known[document] = figure
    return nested


def _triple(entry: Any, kind: str, number: str) -> tuple[Any, Any, Any]:
    if hasattr(entry, "query_id") and hasattr(entry, "doc_id") and hasattr(entry, number):
        return entry.query_id, entry.doc_id, getattr(entry, number)
    if isinstance(entry, tuple | list) and len(entry) == 3:
        return entry[0], entry[1], entry[2]
    raise InputError(f"{kind}: {entry!r} is not a triple of topic, document and {number}")


def qrels_in(folder: Path) -> Path:
    """Return the qrels of a BEIR folder: its test split or only file. Raises InputError if there is neither."""
    splits = sorted(p for p in (folder / "qrels").glob("*.tsv*") if p.name.endswith((".tsv", ".tsv.gz")))
    test = [p for p in splits if p.name in ("test.tsv", "test.tsv.gz")]
    if not splits:
        raise InputError(f"{folder} has no judgements: expected qrels/test.tsv, as in BEIR")
    if not test and len(splits) > 1:
        raise InputError(f"{folder} has no test split: name one of {', '.join(map(str, splits))}")
    return (test or splits)[0]
