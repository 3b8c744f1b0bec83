"""`group`: a corpus linked with itself, as a table of its documents by story."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import check_outputs, replacing, write_atomically
from linker.base.logs import logger
from linker.base.progress import Progress, listening
from linker.cli.commands.given import Paths, paths
from linker.cli.commands.sides import Side, judged_pairs, side_of
from linker.cli.commands.together import indexed
from linker.corpora import Columns
from linker.crosslingual.runs import explanations_path
from linker.engine.grouping import Groups, draw
from linker.review.exporting.rows import Cell, Row, cell, headed
from linker.review.exporting.writing import PAIRS, cells_to_csv, cells_to_xlsx, write_pairs
from linker.review.interface import Judgement, Seed

COLUMNS = ("id", "group", "probability", "near_copy_of", "title", "text")
DRAWN = 300  # pairs that are drawn to be judged
UNJUDGED: Any = ""


def group(
    corpora: Paths,
    out: str | Path | None = None,
    *,
    encoder: str | None = None,
    train: Paths = (),
    days: float | None = None,
    precision: float | None = None,
    sample: str | Path | None = None,
    explain: bool = False,
    seed: int = 0,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Groups:
    """Put the documents of one or several corpora (files, folders, an index) that are about one story together.

    The options are those of `linker group`. With `out` (.csv, .xlsx, .jsonl), every document is written there with its
    group. `train`: files of judged pairs. `sample`: a file for pairs drawn from the groups, for people to judge.
    Raises InputError where a file cannot be read or written, or an option lacks what it needs.
    """
    files, judged_files = paths(corpora), paths(train)
    outputs = {"--out": out, "--sample": sample}
    check_outputs(outputs, (*files, *judged_files))
    for option, name in outputs.items():
        if name is not None and Path(name).suffix.lower() not in PAIRS:
            raise InputError(f"{option} {name}: the name must end in {', '.join(PAIRS)}")
    if explain and out is None:
        raise InputError("--explain writes a file beside the groups: name them with --out")
    with listening(progress):
        side = _corpus(files, columns, encoder)
        judged = judged_pairs(judged_files, side.documents)
        with indexed(side, side, encoder) as engine:
            groups = engine.group(judged, days=days, precision=precision, seed=seed)
    if out:
        _write(Path(out), groups, side)
        if explain:
            lines = (orjson.dumps(group, option=orjson.OPT_APPEND_NEWLINE) for group in groups.groups)
            write_atomically(explanations_path(Path(out)), b"".join(lines))
    if sample:
        pairs = draw(groups, DRAWN, seed)
        write_pairs([_row(side, *pair) for pair in pairs], Path(sample))
        logger.info("%s: %s pairs within groups to judge", sample, f"{len(pairs):,}")
    return groups


def _corpus(files: Sequence[Path], columns: Columns | None, encoder: str | None) -> Side:
    """Return the documents of all corpora as one side. Raises InputError where an id is in two of them."""
    sides = [side_of(path, None, columns, encoder) for path in files]
    if len(sides) == 1:
        return sides[0]
    where: dict[str, Path] = {}
    for side in sides:
        for id_ in side.documents:
            if id_ in where:
                raise InputError(
                    f"{where[id_]} and {side.path} both have a document {id_!r}: give each document an id of its own, "
                    "or pass --make-ids"
                )
            where[id_] = side.path
    return Side(sides[0].path, {id_: d for side in sides for id_, d in side.documents.items()}, sides[0].code)


def _write(path: Path, groups: Groups, side: Side) -> None:
    with replacing(path) as file:
        if path.suffix.lower() == ".jsonl":
            for record in _records(groups, side):
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        elif path.suffix.lower() == ".xlsx":
            cells_to_xlsx(_cells(groups, side), file, "groups")
        else:
            cells_to_csv(_cells(groups, side), file)


def _records(groups: Groups, side: Side) -> Iterator[dict[str, Any]]:
    for member in groups.members:
        document = side.documents[member.id]
        yield {
            "id": member.id,
            "group": member.group,
            "probability": member.probability,
            "near_copy_of": member.near_copy_of,
            "title": document.title,
            "text": document.text,
            "metadata": dict(document.metadata),
        }


def _cells(groups: Groups, side: Side) -> Iterable[Sequence[Cell]]:
    names = list(dict.fromkeys(name for document in side.documents.values() for name in document.metadata))
    yield headed(COLUMNS, names)
    for record in _records(groups, side):
        yield [*(record[name] for name in COLUMNS), *(cell(record["metadata"].get(name)) for name in names)]


def _row(side: Side, one: str, other: str, probability: float) -> Row:
    """Return a pair of one group as a review's record, without a verdict."""
    first, second = side.documents[one], side.documents[other]
    seed = Seed(one, first.text, first.title, metadata=dict(first.metadata))
    document = Document(other, second.text, second.title, dict(second.metadata))
    return Row(Judgement(one, other, UNJUDGED, score=probability, probability=probability), seed, document)
