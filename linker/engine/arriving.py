"""Add documents to existing groups in memory: only the groups that a new document may change are compared again."""

import math
from collections.abc import Collection as Ids
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.arrays import distinct
from indexes.collection import Collection
from indexes.dtypes import Float64Array, Int64Array
from indexes.growing import GrowingIndex
from indexes.interface import Document
from indexes.text.bm25 import Bm25Index
from linker.engine.grouping import ALIKE
from linker.engine.groups import Groups
from linker.scoring.groups.clustering import THRESHOLD
from linker.scoring.groups.copies import leaders
from linker.scoring.groups.dates import date_field, fill_from_texts, near_in_time, places
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import Findings, PairEvidence, join_findings, weights
from linker.scoring.groups.finding import AGAIN, Finder
from linker.scoring.groups.following import Change, changes, continue_numbers
from linker.scoring.groups.stories import stories_of


def can_grow(collection: AnyCollection) -> TypeGuard[Collection]:
    """Return whether documents can be added in memory: to a single directory with neither vectors nor fields."""
    if not isinstance(collection, Collection) or collection.manifest.embeds:
        return False
    return isinstance(collection.text, Bm25Index)


class Arriving:
    """The documents of an index and their groups, to which new documents are added in memory only.

    Documents are numbered in order of arrival. A group is compared again with the documents that may join it, and with
    the groups to which these belong (correlation clustering is independent in each connected component). Without judged
    pairs, the result is the same as if all documents were grouped at once, except that earlier comparisons used the
    term weights as they were then.
    """

    def __init__(
        self,
        collection: Collection,
        documents: Sequence[Document],
        rows: Int64Array,
        findings: Findings,
        days: float | None = None,
    ) -> None:
        """`rows` int64 [n]: the index rows of the n `documents`; `findings`: which documents retrieved which others.

        Documents further apart than `days` are not linked.
        """
        self._index = GrowingIndex(collection)
        self._field, self._days = date_field(documents), days
        self._ids, self._texts = [d.id for d in documents], [d.full_text for d in documents]
        self._position = {id_: number for number, id_ in enumerate(self._ids)}
        self._rows = rows
        self._dates = np.array([self._date(d) for d in documents])
        self._order = places(self._ids, self._dates)
        self._stated = fill_from_texts(self._texts, self._dates)
        self._finder = Finder(self._index.collection, rows, self._texts)
        self._findings = _FindingsIndex(findings, len(documents))
        self._number: dict[str, int] = {}
        self._members: dict[int, set[int]] = {}
        self._following = 1

    def text(self, id_: str) -> str | None:
        """Return the text of a document, or None if no document has this id."""
        return self._texts[self._position[id_]] if id_ in self._position else None

    def start(self, groups: Groups) -> None:
        """Start from the groups of the current documents, and keep the groups' numbers."""
        self._number = {m.id: m.group for m in groups.members}
        self._members = {}
        for number, id_ in enumerate(self._ids):
            self._members.setdefault(self._number[id_], set()).add(number)
        self._following = max(self._members, default=0) + 1

    def findings(self) -> tuple[list[str], Findings]:
        """Return the ids of all documents, and which of them retrieved which."""
        return self._ids, self._findings.all()

    def add(self, documents: Sequence[Document]) -> list[Change]:
        """Add documents with new ids, and return the changes of groups.

        As in the log of changes, a new document in no group is not a change; it has no number until a table is written.
        """
        new = self._append(documents)
        self._findings.put(new, self._finder.find(new))
        evidence, p, local = self._evidence(set(new.tolist()))
        near = distinct(local[evidence.pairs[p >= AGAIN]].ravel())
        again = near[near < new[0]]
        self._findings.put(again, self._finder.find(again))
        inside = self._with_groups([*new.tolist(), *again.tolist()])
        while True:
            if len(inside) > len(new):
                evidence, p, local = self._evidence(inside)
            joining = local[evidence.pairs[(p > THRESHOLD) | (evidence.cosine >= ALIKE)]]
            if inside.issuperset(joining.ravel().tolist()):
                return self._grouped(evidence, p, local, inside)
            inside = self._with_groups([*inside, *joining.ravel().tolist()])

    def _append(self, documents: Sequence[Document]) -> Int64Array:
        texts = [d.full_text for d in documents]
        rows = self._index.add([d.id for d in documents], texts)
        dates = np.array([self._date(d) for d in documents])
        first = len(self._ids)
        self._ids += [d.id for d in documents]
        self._order += places(self._ids[first:], dates)
        self._position |= {id_: first + at for at, id_ in enumerate(self._ids[first:])}
        self._texts += texts
        self._rows = np.concatenate([self._rows, rows])
        self._dates = np.concatenate([self._dates, dates])
        self._stated = np.concatenate([self._stated, fill_from_texts(texts, dates)])
        self._finder.extend(rows, texts)
        return np.arange(first, len(self._ids))

    def _date(self, document: Document) -> float:
        return self._field.day(document) if self._field else math.nan

    def _with_groups(self, documents: Iterable[int]) -> set[int]:
        """Return these documents and all other members of their groups."""
        inside = set(documents)
        for number in {self._number.get(self._ids[i], 0) for i in inside}:
            inside |= self._members.get(number, set())
        return inside

    def _evidence(self, documents: Ids[int]) -> tuple[PairEvidence, Float64Array, Int64Array]:
        """Return the evidence for the pairs that include a given document, P(same story), and all documents in them.

        The last, int64 [n], are in the order of their dates, as in `group`.
        """
        found = self._findings.of(documents)
        every = {*documents, *found.one.tolist(), *found.other.tolist()}
        local = np.array(sorted(every, key=self._order.__getitem__), np.int64)
        order = np.argsort(local)
        one, other = (order[np.searchsorted(local[order], end)] for end in (found.one, found.other))
        evidence = join_findings(
            Findings(one, other, found.values, found.last),
            weights(self._index.collection.forward, self._rows[local]),
            self._stated[local],
        )
        if self._days is not None:
            evidence = evidence.where(near_in_time(evidence.pairs, self._dates[local], self._days))
        return evidence, SHIPPED.of_size(len(self._ids)).probabilities(evidence), local

    def _grouped(
        self, evidence: PairEvidence, p: Float64Array, local: Int64Array, inside: Ids[int]
    ) -> list[Change]:
        """Group the documents `inside`, and return the changes; no other `local` document can join their groups."""
        labels = list(range(len(local)))
        copies = evidence.pairs[evidence.cosine >= ALIKE]
        if len(copies) or (p > THRESHOLD).any():  # otherwise, every document is alone
            leader = leaders(len(local), copies, lambda i: self._texts[local[i]])
            labels = stories_of(evidence, p, leader).labels.tolist()
        after = {self._ids[i]: labels[at] for at, i in enumerate(local.tolist()) if i in inside}
        before = {id_: self._number[id_] for id_ in after if id_ in self._number}
        number = continue_numbers(before, after, self._following)
        now: dict[int, list[str]] = {}
        for id_, label in after.items():
            now.setdefault(number[label], []).append(id_)
        now = {group: ids for group, ids in now.items() if len(ids) > 1 or ids[0] in before}
        found = list(changes(before, {id_: group for group, ids in now.items() for id_ in ids}))
        for group in set(before.values()):
            del self._members[group]
        for group, ids in now.items():
            self._members[group] = {self._position[id_] for id_ in ids}
            self._number.update(dict.fromkeys(ids, group))
        self._following = max(self._following, *(group + 1 for group in now), 1)
        return found


class _FindingsIndex:
    """Which documents retrieved which: the initial findings of `count` documents, as changed and extended by `put`."""

    def __init__(self, findings: Findings, count: int) -> None:
        self._first, self._count = findings, count
        self._by_one, self._by_other = np.argsort(findings.one, kind="stable"), np.argsort(findings.other)
        every = np.arange(count + 1)
        self._begins = np.searchsorted(findings.one[self._by_one], every)
        self._ends = np.searchsorted(findings.other[self._by_other], every)
        self._since: dict[int, Findings] = {}
        self._replaced = np.zeros(len(findings), bool)  # marks the initial findings that `put` replaced
        self._finders: dict[int, set[int]] = {}

    def put(self, documents: Int64Array, findings: Findings) -> None:
        """Replace the findings of these documents."""
        for document in documents.tolist():
            own = self._since[document] = findings.where(findings.one == document)
            if document < self._count:
                self._replaced[self._findings_of(document)] = True
            for other in own.other.tolist():
                self._finders.setdefault(other, set()).add(document)

    def _findings_of(self, document: int) -> Int64Array:
        return self._by_one[self._begins[document] : self._begins[document + 1]]

    def of(self, documents: Ids[int]) -> Findings:
        """Return the findings in which one of the documents retrieved another or was retrieved."""
        wanted, parts, at = set(documents), list[Findings](), [self._by_one[:0]]
        for document in sorted(wanted):
            if document in self._since:
                parts.append(self._since[document])
            elif document < self._count:
                at.append(self._findings_of(document))
            if document < self._count:
                by = self._by_other[self._ends[document] : self._ends[document + 1]]
                at.append(by[~self._replaced[by]])
            for finder in sorted(self._finders.get(document, set()) - wanted):
                findings = self._since[finder]
                parts.append(findings.where(findings.other == document))
        return Findings.of([_at(self._first, distinct(np.concatenate(at))), *parts])

    def all(self) -> Findings:
        """Return all findings."""
        return Findings.of([self._first.where(~self._replaced), *self._since.values()])


def _at(findings: Findings, places: Int64Array) -> Findings:
    return Findings(
        findings.one[places], findings.other[places], findings.values[places], findings.last[places]
    )
