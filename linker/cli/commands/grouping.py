"""`group`: the documents of a corpus grouped by story, as a table."""

import contextlib
import dataclasses
import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import orjson
import xxhash

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import check_outputs, replacing, write_atomically
from linker.base.logs import logger
from linker.base.options import takes
from linker.base.progress import listening
from linker.cli.commands.arguments import judged_pairs, paths
from linker.corpora import Columns
from linker.corpora.guessing import check_names
from linker.crosslingual.regrouping import regroup
from linker.crosslingual.runs import explanations_path
from linker.crosslingual.sides import Side, is_index, side_of
from linker.engine.arriving import Arriving
from linker.engine.evidence import Span, passage_columns
from linker.engine.groups import Groups
from linker.engine.options import GroupOptions
from linker.review.exporting.own import write_cells
from linker.review.exporting.rows import Cell, ExportRow, cell, headed
from linker.review.exporting.writing import PAIRS, write_pairs
from linker.review.importing.readers import read_records
from linker.review.interface import Judgement, Seed
from linker.review.watching.arrivals import Appended
from linker.scoring.groups.following import Change, changes, continue_numbers, replay

COLUMNS = ("id", "group", "probability", "near_copy_of", "title", "text", "passage", "offset")
DRAWN = 300  # maximum number of pairs drawn for judging
POLL = 0.5  # seconds between two checks whether the corpora have changed
REST = 20  # for this many times the duration of the last grouping, changes are logged and the table is not rewritten
UNJUDGED: Any = ""


@takes(GroupOptions)
def group(options: GroupOptions) -> Groups:
    """Put the documents of one or several corpora (files, folders, an index) that are about one story together.

    The options are those of `linker group`. With `out` (.csv, .xlsx, .jsonl), every document is written there with its
    group. `train`: files of judged pairs. `sample`: a file for pairs drawn from the groups, for people to judge. With
    `update`, groups keep the numbers that they have in `out`, and their changes are appended to OUT.changes.jsonl; with
    `follow`, this is repeated whenever the corpora have changed, until the caller interrupts. Raises InputError if a
    file cannot be read or written, or an option lacks a required input.
    """
    o = options
    files, judged_files = paths(o.corpora), paths(o.train)
    outputs = {"`out`": o.out, "`sample`": o.sample}
    check_outputs(outputs, (*files, *judged_files))
    for option, name in outputs.items():
        if name is not None and Path(name).suffix.lower() not in PAIRS:
            raise InputError(f"{option} {name}: the name must end in {', '.join(PAIRS)}")
    if (o.explain or o.update or o.follow) and o.out is None:
        raise InputError("`explain`, `update` and `follow` need a file for the groups: name it with `out`")
    if o.follow and (o.sample or not all(path.exists() for path in files)):
        raise InputError("`follow` needs existing files or folders, and cannot be combined with `sample`")
    if o.follow:
        _follow(o, files, judged_files)
    return _group(o, files, judged_files)[0]


def _follow(options: GroupOptions, files: Sequence[Path], judged_files: Sequence[Path]) -> NoReturn:
    """Group documents as they arrive, until the caller interrupts.

    Documents that are appended to files of JSON lines are compared one by one, and only what they change is logged.
    The table is written again after REST times the duration of the last grouping, or at the end.
    """
    assert options.out is not None
    since, out = None, Path(options.out)
    while True:
        seen, began = _state(files), time.monotonic()
        appended = Appended(files, options.columns) if all(map(Appended.can_read, files)) else None
        _, arriving = _group(options, files, judged_files, since)
        since, ends = None, time.monotonic() + REST * (time.monotonic() - began)
        start = _fingerprint(out)
        try:
            while since is None or time.monotonic() < ends:
                if (state := _state(files)) == seen:
                    time.sleep(POLL)
                    continue
                new = _new(appended.read(), arriving) if appended and arriving else None
                if new is None or arriving is None:
                    break
                lines = _lines(start, arriving.add(new) if new else ())
                with _log_of(out).open("ab") as log:
                    log.write(lines)
                    log.flush()
                    os.fsync(log.fileno())
                seen, since = state, arriving
        except KeyboardInterrupt:
            if since:
                _group(options, files, judged_files, since)
            raise


def _new(documents: Sequence[Document] | None, arriving: Arriving) -> list[Document] | None:
    """Return the documents with new ids; None if `documents` is None, or a known id has a new text."""
    new = [d for d in documents or () if arriving.text(d.id) != d.full_text]
    ids = {d.id for d in new if arriving.text(d.id) is None}
    return None if documents is None or len(ids) < len(new) else new


def _state(files: Iterable[Path]) -> list[tuple[Path, int, int]]:
    """Return sizes and modification times of files, and of all files in folders, to detect that one has changed."""
    found = []
    for path in itertools.chain.from_iterable((file, *file.rglob("*")) for file in files):
        with contextlib.suppress(OSError):  # a commit of an index may have deleted the file
            state = path.stat()
            found.append((path, state.st_size, state.st_mtime_ns))
    return found


def _group(
    options: GroupOptions, files: Sequence[Path], judged_files: Sequence[Path], since: Arriving | None = None
) -> tuple[Groups, Arriving | None]:
    """Group the documents of files once, and write the files that the options name.

    With `follow`, also return the object that accepts further documents; `since`: the one from the previous call, which
    has the documents that have arrived since.
    """
    o, out = options, None if options.out is None else Path(options.out)
    before = _numbers(out) if (o.update or o.follow) and out and out.exists() else None
    with listening(o.progress):
        side = _corpus(files, o.columns, o.encoder)
        judged = judged_pairs(judged_files, side.documents)
        groups, about, arriving = regroup(
            side, judged, encoder=o.encoder, days=o.days, precision=o.precision, seed=o.seed, with_passages=bool(out),
            next_to=out if o.update or o.follow else None, since=since, stays=o.follow,
        )  # fmt: skip
    if out:
        if before is not None:
            groups = _update(out, groups, before)
        _write(out, groups, side, about)
        if o.explain:
            lines = (orjson.dumps(group, option=orjson.OPT_APPEND_NEWLINE) for group in groups.groups)
            write_atomically(explanations_path(out), b"".join(lines))
    if o.sample:
        pairs = draw(groups, DRAWN, o.seed)
        between = [(*pair, None) for stratum in groups.strata[1:] for pair in stratum.pairs]
        write_pairs([_row(side, *pair) for pair in (*pairs, *between)], Path(o.sample))
        logger.info(
            "%s: %s pairs within groups to judge for the precision, then %s pairs between groups for the recall",
            o.sample, f"{len(pairs):,}", f"{len(between):,}",
        )  # fmt: skip
    if arriving:
        arriving.start(groups)
    return groups, arriving


def draw(groups: Groups, count: int, seed: int = 0) -> list[tuple[str, str, float]]:
    """Return random pairs of different texts in one group, and the probability of their group."""
    copies = {member.id for member in groups.members if member.near_copy_of is not None}
    pairs = [
        (*pair, group.probability)
        for group in groups.groups
        for pair in itertools.combinations([id_ for id_ in group.ids if id_ not in copies], 2)
    ]
    order = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[i] for i in order.tolist()]


def _corpus(files: Sequence[Path], columns: Columns | None, encoder: str | None) -> Side:
    """Return the documents of all corpora as one `Side`. Raises InputError if an id is in two of them."""
    check_names([path for path in files if not is_index(path)], columns or Columns())
    sides = [side_of(path, None, columns, encoder) for path in files]
    if len(sides) == 1:
        return sides[0]
    where: dict[str, str] = {}
    for side in sides:
        for id_ in side.documents:
            if id_ in where:
                raise InputError(
                    f"{where[id_]} and {side.name} both have a document {id_!r}: give each document an id of its own, "
                    "or pass `make_ids`"
                )
            where[id_] = side.name
    return Side(tuple(files), {id_: d for side in sides for id_, d in side.documents.items()}, sides[0].code)


def _numbers(path: Path) -> dict[str, int]:
    """Return the group of each document in a table of groups. Raises InputError if the file is not such a table."""
    found = {}
    for number, _, fields in read_records(path):
        try:
            assert isinstance(fields, Mapping)
            found[str(fields["id"])] = int(float(fields["group"]))
        except (AssertionError, KeyError, TypeError, ValueError, OverflowError) as e:
            raise InputError(
                f"{path}:{number}: expected a document and its group: `update` needs a table of groups"
            ) from e
    return found


def _update(path: Path, groups: Groups, table: Mapping[str, int]) -> Groups:
    """Return the groups with their numbers in the previous `table` and in the log next to it; add changes to the log.

    The log is written before the table, and each of its lines names the table to which it applies: if the process is
    killed in between, the next run starts from that table with these changes.
    """
    start, log = _fingerprint(path), _log_of(path)
    earlier = log.read_bytes() if log.exists() else b""
    earlier = earlier[: earlier.rfind(b"\n") + 1]  # a kill may have left the last line unfinished
    before = replay(table, _changes_since(start, log, earlier))
    number = continue_numbers(
        before, {m.id: m.group for m in groups.members}, 1 + max(table.values(), default=0)
    )
    groups = groups.numbered(number)
    changed = list(changes(before, {m.id: m.group for m in groups.members}))
    write_atomically(log, earlier + _lines(start, changed))
    counts = Counter(change.change for change in changed)
    logger.info(
        "%s: %s", log, ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing changed"
    )
    return groups


def _fingerprint(path: Path) -> str:
    """Return a hash of a table's bytes, by which the log of changes refers to the table."""
    return xxhash.xxh3_64_hexdigest(path.read_bytes())


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + ".changes.jsonl")


def _changes_since(start: str, log: Path, content: bytes) -> list[Change]:
    """Return the changes in a log's `content` that apply to the table `start`. Raises InputError if it is not a log."""
    try:
        every = [orjson.loads(line) for line in content.splitlines() if line]
        return [
            Change(line["change"], line["group"], tuple(line["ids"]), line["other"])
            for line in every
            if line["since"] == start
        ]
    except (orjson.JSONDecodeError, KeyError, TypeError) as e:
        raise InputError(f"{log} is not a log of changes: move it elsewhere") from e


def _lines(start: str, changed: Iterable[Change]) -> bytes:
    return b"".join(
        orjson.dumps({"since": start, **dataclasses.asdict(change)}, option=orjson.OPT_APPEND_NEWLINE)
        for change in changed
    )


def _write(path: Path, groups: Groups, side: Side, about: Mapping[str, Span | None]) -> None:
    if path.suffix.lower() != ".jsonl":
        write_cells(_cells(groups, side, about), path, "groups")
        return
    with replacing(path) as file:
        for record in _records(groups, side, about):
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def _records(groups: Groups, side: Side, about: Mapping[str, Span | None]) -> Iterator[dict[str, Any]]:
    for member in groups.members:
        document = side.documents[member.id]
        yield {
            "id": member.id,
            "group": member.group,
            "probability": member.probability,
            "near_copy_of": member.near_copy_of,
            "title": document.title,
            "text": document.text,
            **passage_columns(document.text, about.get(member.id)),
            "metadata": dict(document.metadata),
        }


def _cells(groups: Groups, side: Side, about: Mapping[str, Span | None]) -> Iterable[Sequence[Cell]]:
    names = list(dict.fromkeys(name for document in side.documents.values() for name in document.metadata))
    yield headed(COLUMNS, names)
    for record in _records(groups, side, about):
        yield [*(record[name] for name in COLUMNS), *(cell(record["metadata"].get(name)) for name in names)]


def _row(side: Side, one: str, other: str, probability: float | None) -> ExportRow:
    """Return a pair for judging, in the form of a review's record without a verdict; `probability` is its group's."""
    first, second = side.documents[one], side.documents[other]
    seed = Seed(one, first.text, first.title, metadata=dict(first.metadata))
    document = Document(other, second.text, second.title, dict(second.metadata))
    return ExportRow(
        Judgement(one, other, UNJUDGED, score=probability, probability=probability), seed, document
    )
