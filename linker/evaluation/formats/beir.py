"""The judgements of a BEIR folder: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

from pathlib import Path

from linker.errors import InputError


def qrels_in(folder: Path) -> Path:
    """Return the file of a BEIR folder's judgements: those of the test split, or the only ones.

    Raises InputError where there are none, or several and none of them is the test split's.
    """
    splits = sorted(p for p in (folder / "qrels").glob("*.tsv*") if p.name.endswith((".tsv", ".tsv.gz")))
    test = [p for p in splits if p.name in ("test.tsv", "test.tsv.gz")]
    if not splits:
        raise InputError(f"{folder} holds no judgements: expected qrels/test.tsv, as BEIR has it")
    if not test and len(splits) > 1:
        raise InputError(f"{folder} has no test split: name one of {', '.join(map(str, splits))}")
    return (test or splits)[0]
