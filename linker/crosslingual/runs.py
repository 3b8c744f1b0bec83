"""Runs of BUCC's six columns, `id1 X id2 Y score run.name`, and beside each a file that says how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from indexes.dtypes import Float32Array
from linker.crosslingual.methods import link
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.scoring.checkpoint import Checkpoint
from linker.crosslingual.task import Task
from linker.errors import InputError
from linker.evaluation.reading.trec import write_run
from linker.files import write_atomically


def link_to_file(task: Task, method: str, path: Path, *, k: int, name: str, resume: bool = False) -> int:
    """Link a task's pages, write the run, and return how many pages got a line.

    The pass over all pairs is kept in RUN.part once a minute; `resume` goes on from there. Raises InputError if
    reasons are asked for and the run is no file that they can lie beside.
    """
    if task.options.explain and path.exists() and not path.is_file():
        raise InputError(
            f"--explain writes a file beside the run, and {path} is no file: name one with --out"
        )
    checkpoint = Checkpoint(path.with_name(path.name + ".part"), task.fingerprint(method), resume)
    links = link(replace(task, checkpoint=checkpoint), method)
    candidates = links.candidates.cut(k)
    write_links(path, task.source, task.target, candidates, name, _about(task) | dict(links.metadata))
    if links.explanations is not None:
        lines = (orjson.dumps(dict(record)) + b"\n" for record in links.explanations)
        write_atomically(explanations_path(path), b"".join(lines))
    checkpoint.remove()
    return int((candidates.targets[:, 0] >= 0).sum())


def _about(task: Task) -> dict[str, Any]:
    return {
        "languages": [task.source.language.code, task.target.language.code],
        "pages": [len(task.source), len(task.target)],
        "dictionaries": [
            {"file": d.path.name, "format": d.format, "pairs": len(d.pairs)} for d in task.dictionaries
        ],
        "links": len(task.train),
        "options": asdict(task.options),
        "one_to_one": task.one_to_one,
    }


def write_links(
    path: Path, source: Pages, target: Pages, candidates: Candidates, name: str, metadata: Mapping[str, Any]
) -> None:
    """Write candidates as a run, and `metadata` as RUN.json; a page without candidates gets no line.

    Scores must fall strictly in each row (`descending`). Both files appear whole or not at all.
    """
    write_run(path, _topics(source, target, candidates), name)
    if path.is_file():  # a pipe has no neighbour
        text = orjson.dumps(dict(metadata), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        write_atomically(metadata_path(path), text + b"\n")


def metadata_path(run: Path) -> Path:
    """Return the place of a run's metadata."""
    return run.with_name(run.name + ".json")


def explanations_path(run: Path) -> Path:
    """Return the place of a run's explanations, a JSON object a line."""
    return run.with_name(run.name + ".explain.jsonl")


def _topics(
    source: Pages, target: Pages, candidates: Candidates
) -> Iterator[tuple[str, list[str], Float32Array]]:
    for id_, targets, scores in zip(source.ids, candidates.targets, candidates.scores, strict=True):
        kept = targets >= 0
        if kept.any():
            yield id_, [target.ids[column] for column in targets[kept].tolist()], scores[kept]
