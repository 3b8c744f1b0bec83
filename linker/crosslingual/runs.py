"""Writing runs in BUCC's six columns, `id1 X id2 Y score run.name`, with a metadata file next to each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from indexes.dtypes import Float32Array
from linker.base.errors import InputError
from linker.base.files import STDOUT, write_atomically
from linker.crosslingual.methods import link
from linker.crosslingual.options import LEARN
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.model import LinkModel
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.scoring.checkpoint import Checkpoint
from linker.crosslingual.scoring.stages import remove
from linker.crosslingual.task import LinkingResult, Task
from linker.evaluation.reading.trec import write_run

PROBABLE = 0.5  # P(link) from which a link is more probable than not


def link_and_write(
    task: Task, method: str, path: Path | None, *, k: int, name: str, resume: bool = False
) -> LinkingResult:
    """Link a task's pages to at most `k` targets each, and write the run to `path`, if there is one.

    The pass over all pairs then writes a checkpoint to RUN.part once a minute, and the learned methods keep the
    results of their stages in a folder of that name; `resume` continues from it. Raises InputError if `link` does, if
    the checkpoint belongs to another task or is damaged, or if explanations are requested but the run is not a
    regular file that they can be stored next to.
    """
    if path is None:
        result = link(task, method)
        return replace(result, candidates=result.candidates.cut(k))
    checkpoint = None
    if holds_files_beside(path):
        checkpoint = Checkpoint(path.with_name(path.name + ".part"), task.fingerprint(method), resume)
    elif resume or task.options.explain:
        option, use = ("`resume`", "reads") if resume else ("`explain`", "writes")
        raise InputError(
            f"{option} {use} a file next to the run, and {path} is not a regular file: name another one with `out`"
        )
    links = link(replace(task, checkpoint=checkpoint), method)
    candidates = links.candidates.cut(k)
    firsts = candidates.scores[:, 0][candidates.targets[:, 0] >= 0]
    about = _about(task) | dict(links.metadata) | count(firsts.tolist(), method)
    write_links(path, task.source, task.target, candidates, name, about)
    if links.explanations is not None:
        lines = (orjson.dumps(dict(record)) + b"\n" for record in links.explanations)
        write_atomically(explanations_path(path), b"".join(lines))
    if checkpoint:
        remove(checkpoint.path)
    return replace(links, candidates=candidates)


def run_of(source: Pages, target: Pages, candidates: Candidates) -> dict[str, dict[str, float]]:
    """Return candidates as a run: source page → target page → score, best first; unlinked pages are left out."""
    topics = _topics(source, target, candidates)
    return {id_: dict(zip(targets, scores.tolist(), strict=True)) for id_, targets, scores in topics}


def count(firsts: Iterable[float], method: str) -> dict[str, int]:
    """Return how many texts are linked, given the scores of their first targets, and how many have any target.

    If the method gives probabilities, only links that are more probable than not count as linked.
    """
    scores = list(firsts)
    linked = sum(p >= PROBABLE for p in scores) if method in LEARN else len(scores)
    return {"linked": linked, "linked_any": len(scores)}


def _about(task: Task) -> dict[str, Any]:
    return {
        "languages": [task.source.language.code, task.target.language.code],
        "texts": [len(task.source), len(task.target)],
        "dictionaries": [
            {"file": d.path.name, "format": d.format, "pairs": len(d.pairs)} for d in task.dictionaries
        ],
        "links": len(task.train),
        "options": task.options.record(),
        "model": _about_model(task.model) if task.model else None,
    }


def _about_model(model: LinkModel) -> dict[str, Any]:
    languages = [one.code for one in model.languages]
    return {"fingerprint": model.fingerprint, "languages": languages, **model.about}


def write_links(
    path: Path, source: Pages, target: Pages, candidates: Candidates, name: str, metadata: Mapping[str, Any]
) -> None:
    """Write candidates as a run, and `metadata` as RUN.json; pages without candidates get no line.

    The scores of each row must be strictly decreasing (`descending`). Each file is written atomically.
    """
    write_run(path, _topics(source, target, candidates), name)
    write_metadata(path, metadata)


def write_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    """Write RUN.json next to a run, if that is a regular file."""
    if holds_files_beside(path):
        text = orjson.dumps(dict(metadata), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        write_atomically(metadata_path(path), text + b"\n")


def holds_files_beside(path: Path) -> bool:
    """Return whether files can be stored next to a run: not if it goes to stdout, a pipe or a device."""
    return path not in STDOUT and (path.is_file() or not path.exists())


def metadata_path(run: Path) -> Path:
    """Return the path of a run's metadata: RUN.json."""
    return run.with_name(run.name + ".json")


def explanations_path(run: Path) -> Path:
    """Return the path of a run's explanations, RUN.explain.jsonl: one JSON object per line."""
    return run.with_name(run.name + ".explain.jsonl")


def _topics(
    source: Pages, target: Pages, candidates: Candidates
) -> Iterator[tuple[str, list[str], Float32Array]]:
    for id_, targets, scores in zip(source.ids, candidates.targets, candidates.scores, strict=True):
        valid = targets >= 0
        if valid.any():
            yield id_, [target.ids[column] for column in targets[valid].tolist()], scores[valid]
