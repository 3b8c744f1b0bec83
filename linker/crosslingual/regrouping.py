"""The groups of one side. An index of its files, and which documents found which, are kept for the next run."""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import xxhash

from indexes.anywhere import AnyCollection
from indexes.dropping import drop
from indexes.interface import Document
from linker.base.errors import InputError
from linker.crosslingual.sides import Side, analysis_of, is_index
from linker.crosslingual.together import open_index
from linker.engine.arriving import Arriving, can_grow
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.evidence import Span, evidence, query_terms
from linker.engine.grouping import group
from linker.engine.groups import Groups
from linker.scoring.groups.finding import origin
from linker.scoring.groups.last_grouping import LastGrouping

STATE, FINDINGS = ".state", "findings.npz"  # suffix of the folder, and a file in it


class Regrouping(NamedTuple):
    """The groups of a side, the passages of their members and, if requested, the object that accepts more documents."""

    groups: Groups
    passages: dict[str, Span | None]
    arriving: Arriving | None


def regroup(
    side: Side,
    judged: Mapping[tuple[str, str], bool] | None = None,
    *,
    encoder: str | None = None,
    days: float | None = None,
    precision: float | None = None,
    seed: int = 0,
    with_passages: bool = False,
    next_to: Path | None = None,
    since: Arriving | None = None,
    stays: bool = False,
) -> Regrouping:
    """Return the groups of a side, as `Engine.group` does, and, if requested, the passage of each member of a group.

    The data for the next call are kept in a folder `next_to` a file, so that only new documents are compared; the
    folder can be deleted between two calls. `since`: documents that have arrived after the last call, which are not
    compared again. If the side `stays` open for further documents, `arriving` of the result accepts them one by one.
    """
    documents = list(side.documents.values())
    folder = next_to.with_name(next_to.name + STATE) if next_to else None
    if folder:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as e:
            raise InputError(f"cannot write the folder {folder}: {e.strerror}") from e
    last = LastGrouping(folder / FINDINGS, documents, since.findings() if since else None) if folder else None
    with _open_index(side, encoder, last, folder) as (engine, ids):
        collection = engine.collection
        rows = collection.rows.locate(ids)
        groups = group(
            collection, documents, rows, judged, days=days, precision=precision, seed=seed, kept=last
        )
        about = passages(collection, groups, side.documents, last) if with_passages else {}
        arriving = None
        if stays and last and not judged and can_grow(collection):
            known = last.restore(list(side.documents), origin(collection))
            if known and not known[1].any():
                arriving = Arriving(collection, documents, rows, known[0], days)
    if last:
        last.save()
    return Regrouping(groups, about, arriving)


@contextlib.contextmanager
def _open_index(
    side: Side, encoder: str | None, last: LastGrouping | None, folder: Path | None
) -> Iterator[tuple[Engine, Sequence[str]]]:
    """Yield an index of a side's documents, and their ids in it: the side's own, a temporary one, or one in `folder`.

    The index in the folder is brought up to date in one commit. Its ids are the documents' keys, so that it need not
    be read to know which have changed.
    """
    if last is None or folder is None or side.engine is not None:
        with open_index(side, side, encoder) as engine:
            yield engine, list(side.documents)
        return
    name = analysis_of(side, side)
    directory = folder / f"index-{xxhash.xxh3_64_hexdigest(os.fsencode(f'{name} {encoder}'))}"
    if last.full or not is_index(directory):
        for old in filter(is_index, folder.glob("index-*")):
            drop(old)
        create(directory, encoder=encoder or "none", language=name, positions=True)
    documents = {f"{last.key[id_]:016x}": document for id_, document in side.documents.items()}
    with Engine.open(directory) as engine:
        rows = engine.collection.rows
        dead = set(rows.dead.tolist())
        before = {id_ for row, id_ in enumerate(rows.ids) if row not in dead}
        new = [Document(id_, d.text, d.title) for id_, d in documents.items() if id_ not in before]
        engine.apply([*sorted(before - documents.keys()), *new])
        yield engine, list(documents)


def passages(
    collection: AnyCollection,
    groups: Groups,
    documents: Mapping[str, Document],
    last: LastGrouping | None = None,
) -> dict[str, Span | None]:
    """Return the start and end, in the text of each member of a group, of the sentence that is about the story.

    It is found by the words that the member shares with the representative; for the representative itself, by those
    shared with the first other text. Finding it takes milliseconds per member, unless it is in `last`.
    """
    copies, found = {m.id for m in groups.members if m.near_copy_of}, dict[str, Span | None]()
    terms = functools.cache(lambda id_: query_terms(collection, documents[id_].full_text))

    def make(id_: str, by: str) -> Span | None:
        return evidence(collection, terms(by), documents[id_].text).passage

    for one in groups.groups:
        stands = one.representative
        other = next((id_ for id_ in one.ids if id_ not in copies and id_ != stands), stands)
        for id_ in one.ids:
            by = other if id_ == stands else stands
            found[id_] = last.span_of(id_, by, functools.partial(make, id_, by)) if last else make(id_, by)
    return found
