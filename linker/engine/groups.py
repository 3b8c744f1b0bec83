"""The groups of a corpus as returned to callers: each document's group, and the evidence for each group."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from indexes.interface import Document
from indexes.showing import SHOWN, one_line, table
from indexes.text.analysis import Analysis
from indexes.text.marking import words_in
from indexes.text.vocabulary import term_hash
from linker.scoring.groups.asking import Stratum
from linker.scoring.groups.copies import without_frame
from linker.scoring.groups.dates import iso
from linker.scoring.groups.evidence import PairEvidence
from linker.scoring.groups.last_grouping import LastGrouping
from linker.scoring.groups.stories import Stories
from linker.scoring.probability.promise import Promise

TITLE, WORDS = 100, 8  # maximum length in characters of a group's title, and maximum number of its words


@dataclass(frozen=True, slots=True)
class Member:
    """A document in its group; `probability`: P(it belongs with the other members), None if it is the only one.

    `near_copy_of`: the id of the document of which it is a near-duplicate. `date`: its day in ISO 8601.
    """

    id: str
    group: int
    probability: float | None = None
    near_copy_of: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of two or more documents, and the evidence for it.

    `ids`: the members in corpus order. `representative`: the member closest to the others (the medoid); `title`: its
    title or beginning. `probability`: the expected share of its pairs that are correct. `words`: the weightiest words
    that occur in most members; `names`: those of them with a capital letter or a digit. `weakest`: the two ids and the
    probability of the link whose loss would split the group; `leaving`: the members that would leave with the second
    of them. `dates`: the first and the last day, in ISO 8601.
    """

    number: int
    ids: tuple[str, ...]
    title: str
    representative: str
    probability: float
    words: tuple[str, ...]
    names: tuple[str, ...]
    weakest: tuple[str, str, float] | None
    leaving: tuple[str, ...]
    dates: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a corpus: every document once in `members`, in corpus order, and the `groups` of two or more.

    Groups are numbered from 1 in the order of their first documents. `promise`: the guaranteed precision of pairs
    within groups, if requested and certified. `metadata` says how the groups were made. `strata`: pairs drawn at
    random; judging them shows how many pairs are missed. `recall`: the estimated share of correct pairs that are within
    groups, and its 95 % interval; None unless a precision was requested and all pairs drawn between groups are judged.
    """

    members: tuple[Member, ...]
    groups: tuple[Group, ...]
    promise: Promise | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    strata: tuple[Stratum, ...] = field(default=(), repr=False)
    recall: tuple[float, float, float] | None = None

    def numbered(self, number: Mapping[int, int]) -> Groups:
        """Return the same groups with different numbers; `number` maps the current ones to the new ones."""
        members = tuple(
            m if number[m.group] == m.group else replace(m, group=number[m.group]) for m in self.members
        )
        groups = sorted((replace(g, number=number[g.number]) for g in self.groups), key=lambda g: g.number)
        return replace(self, members=members, groups=tuple(groups))

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        inside = sum(len(group.ids) for group in self.groups)
        return f"<Groups: {len(self)} of two or more, with {inside} of {len(self.members)} documents>"

    def _repr_html_(self) -> str:
        largest = sorted(self.groups, key=lambda group: (-len(group.ids), group.number))[:SHOWN]
        rows = [(g.number, len(g.ids), g.title, ", ".join(g.words[:5])) for g in largest]
        return table(rows, ("group", "documents", "title", "words"), repr(self)[1:-1])


def build_groups(
    analysis: Analysis,
    documents: Sequence[Document],
    position: Int64Array,
    evidence: PairEvidence,
    stories: Stories,
    dates: Float64Array,
    certified: Promise | None,
    metadata: Mapping[str, Any],
    last: LastGrouping | None,
) -> Groups:
    """Return the groups, with documents in corpus order; `position` int64 [n]: each document's place in that order."""
    number: dict[int, int] = {}
    members = []
    for i in np.argsort(position).tolist():
        label, lead, belongs = int(stories.labels[i]), int(stories.leader[i]), float(stories.belongs[i])
        members.append(
            Member(
                documents[i].id,
                number.setdefault(label, len(number) + 1),
                None if np.isnan(belongs) else round(belongs, 4),
                documents[lead].id if lead != i else None,
                iso(dates[i]) if np.isfinite(dates[i]) else None,
            )
        )
    groups = []
    for story in stories.groups():
        inside = story.members[np.argsort(position[story.members])]
        representative = documents[story.medoid]
        make = functools.partial(_words, analysis, representative.full_text, evidence, story.members)
        ids = tuple(documents[i].id for i in inside.tolist())
        words = last.words_of((representative.id, *ids), make) if last else make()
        known = dates[inside][np.isfinite(dates[inside])]
        weak = story.weakest
        groups.append(
            Group(
                number[story.label],
                ids,
                one_line(representative.title or representative.text, TITLE),
                representative.id,
                round(story.probability, 4),
                words,
                tuple(w for w in words if not w.islower() and (w[0].isupper() or any(map(str.isdigit, w)))),
                (documents[weak[0]].id, documents[weak[1]].id, round(weak[2], 4)) if weak else None,
                tuple(documents[i].id for i in story.leaving.tolist()),
                (iso(known.min()), iso(known.max())) if len(known) else None,
            )
        )
    return Groups(tuple(members), tuple(sorted(groups, key=lambda g: g.number)), certified, dict(metadata))


def _words(analysis: Analysis, text: str, evidence: PairEvidence, members: Int64Array) -> tuple[str, ...]:
    """Return the weightiest words that occur in most members, as written in the representative's `text`."""
    part = evidence.texts[members]
    columns, at = np.unique(part.indices, return_inverse=True)
    weight = np.bincount(at, part.data) * (np.bincount(at) > len(members) / 2)
    best = np.argsort(-weight, kind="stable")[:WORDS]
    wanted = evidence.hashes[columns[best[weight[best] > 0]]].tolist()
    written: dict[int, str] = {}
    text = without_frame(text)
    for start, end, terms in words_in(analysis, text):
        for term in terms.intersection(analysis.content_terms(analysis.prepare(text[start:end]))):
            written.setdefault(term_hash(term), text[start:end])
    return tuple(dict.fromkeys(written[h] for h in wanted if h in written))
