"""A corpus linked with itself: which of its documents are near copies, or about one story."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.interface import Document
from indexes.showing import SHOWN, one_line, table
from indexes.text.analysis import Analysis
from indexes.text.marking import words_in
from indexes.text.vocabulary import term_hash
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.progress import bar
from linker.engine.evidence import Span, evidence
from linker.scoring.groups import evidence as pairs_of
from linker.scoring.groups.asking import Stratum, strata
from linker.scoring.groups.copies import leaders, without_frame
from linker.scoring.groups.evidence import PairEvidence
from linker.scoring.groups.judged import Judged, judged_of
from linker.scoring.groups.shipped import SHIPPED
from linker.scoring.groups.stories import ScoredStory, Stories, stories_of
from linker.scoring.probability.promise import Promise, promise
from linker.scoring.ranking.candidates import day_of, document_day

ALIKE = 0.5  # minimum cosine of near copies
LOOKED_AT = 1000  # documents examined to find the date field
DATED = 0.5  # minimum share of them with a date in it
TITLE, WORDS = 100, 8  # maximum characters of a title, words of a group


@dataclass(frozen=True, slots=True)
class Member:
    """A document in its group: P(it belongs to the other members), None if alone; the document it copies; its day.

    `date` is in ISO 8601, None if the document has none. `passage`: where the sentence that is about the story begins
    and ends in the document's text, by the words that it shares with the group's representative.
    """

    id: str
    group: int
    probability: float | None = None
    near_copy_of: str | None = None
    date: str | None = None
    passage: Span | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of two or more documents, and what holds it together.

    `ids`: the members in the corpus' order. `representative`: the member closest to the others (the medoid), and
    `title` is its title or beginning. `probability`: the expected share of right pairs. `words`: the weightiest words
    in most members; `names`: those written with a capital or a digit. `weakest`: the link whose loss would split the
    group, and its probability; `leaving`: the members that would leave with its second document. `dates`: the first
    and the last day, in ISO 8601.
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
    """The groups of a corpus: every document once in `members`, in the corpus' order, and the `groups` of two or more.

    Groups are numbered from 1 in the order of their first documents. `promise`: the guaranteed precision of pairs
    within groups, if requested and certified. `metadata` says how the groups were made. `strata`: pairs whose
    verdicts estimate how many pairs are missed (`linker.scoring.groups.asking.recall`).
    """

    members: tuple[Member, ...]
    groups: tuple[Group, ...]
    promise: Promise | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    strata: tuple[Stratum, ...] = field(default=(), repr=False)

    def numbered(self, number: Mapping[int, int]) -> Groups:
        """Return the same groups with different numbers."""
        members = tuple(replace(member, group=number[member.group]) for member in self.members)
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


def group(
    collection: AnyCollection,
    judged: Mapping[tuple[str, str], bool] | None = None,
    *,
    days: float | None = None,
    precision: float | None = None,
    seed: int = 0,
) -> Groups:
    """Return the groups of the documents of an index; see `Engine.group`."""
    documents, dates = _ordered(list(collection.matching(None)))
    if not documents:
        raise InputError("the index holds no documents: there is nothing to group")
    known = judged_of(
        judged or {}, {d.id: i for i, d in enumerate(documents)}, halved=precision is not None, seed=seed
    )
    if precision is not None and not len(known):
        raise InputError("a promised precision is tested on judged pairs: pass them with `train`")
    rows, texts = collection.rows.locate([d.id for d in documents]), [d.full_text for d in documents]
    with bar(len(documents), "finding pairs", "documents") as meter:
        found = pairs_of.gather(collection, rows, texts, stated(texts, dates), meter.update)
    if days is not None:
        found = found.where(_near_in_time(found.pairs, dates, days))
    leader = leaders(len(documents), found.pairs[found.cosine >= ALIKE], texts.__getitem__)
    probabilities, learned = _probabilities(found, known)
    stories = stories_of(found, probabilities, leader)
    certified, tested = None, 0
    if precision is not None:
        scores, right = known.within(stories)
        tested = len(right)
        certified = promise(scores, right, precision)
        stories = stories.at_least(certified.threshold if certified else np.inf)
        _report(certified, precision, tested)
    metadata = {
        "documents": len(documents), "pairs": len(found.pairs), "judged_pairs": len(judged or {}),
        "learned_from": learned, "tested_on": tested, "days": days,
    }  # fmt: skip
    named = _named(collection, documents, found, stories, dates, certified, metadata)
    return replace(named, strata=strata(stories, [d.id for d in documents], seed))


def _probabilities(found: PairEvidence, known: Judged) -> tuple[Float64Array, int]:
    """Return P(same story) of the pairs, float64 [m], and the number of judged pairs learned from."""
    at, same = known.labels(found.pairs)
    if len(at):
        model = SHIPPED.with_vectors(found) if pairs_of.BY_VECTORS[0] in found.names else SHIPPED
        chosen = np.zeros(len(found.pairs), bool)
        chosen[at] = True
        logger.info("P(same story) also knows %s judged pairs", f"{len(at):,}")
        return model.learned(found.where(chosen), same).probabilities(found), len(at)
    return SHIPPED.probabilities(found), 0


def _report(certified: Promise | None, precision: float, tested: int) -> None:
    if certified is None:
        logger.warning(
            "no threshold is certain to keep a precision of %g with the %s judged pairs within groups, so only near "
            "copies are grouped: lower `precision`, or judge more pairs (`sample` draws them)",
            precision,
            f"{tested:,}",
        )
        return
    logger.info(
        "groups of probability ≥ %.3f keep a precision of %g of their pairs with 95%% confidence: %s of %s judged "
        "pairs are right",
        certified.threshold, precision, f"{certified.right:,}", f"{certified.links:,}",
    )  # fmt: skip


def _ordered(documents: list[Document]) -> tuple[list[Document], Float64Array]:
    """Return documents and dates sorted by date and id, so that groups do not depend on the corpus' order.

    The first of near copies is then the earliest.
    """
    dates = _days(documents)
    known = np.nan_to_num(dates, nan=np.inf)
    order = sorted(range(len(documents)), key=lambda i: (known[i], len(documents[i].id), documents[i].id))
    return [documents[i] for i in order], dates[order]


def _days(documents: Sequence[Document]) -> Float64Array:
    """Return the date of each document as days since year 1, float64 [n], NaN if it has none.

    The date field is the first metadata field with a date in at least half of the examined documents.
    """
    some = documents[:: max(1, len(documents) // LOOKED_AT)]
    names = dict.fromkeys(name for document in some for name in document.metadata)
    for name in names:
        dated = np.isfinite([document_day(document.metadata, name) for document in some])
        if dated.mean() >= DATED:
            return np.array([document_day(document.metadata, name) for document in documents])
    return np.full(len(documents), np.nan)


def stated(texts: Sequence[str], dates: Float64Array) -> Float64Array:
    """Return `dates` [n], those that are not known by the last date that the text states."""
    return np.array(
        [day_of(text) if np.isnan(date) else date for text, date in zip(texts, dates, strict=True)]
    )


def _near_in_time(pairs: Int64Array, dates: Float64Array, days: float) -> BoolArray:
    """Return whether the pairs lie within that many days of each other, bool [m]. Raises InputError without dates."""
    if not np.isfinite(dates).any():
        raise InputError("`days` needs dates: no metadata field has an ISO date in half of the documents")
    return ~(np.abs(dates[pairs[:, 0]] - dates[pairs[:, 1]]) > days)


def _named(
    collection: AnyCollection,
    documents: Sequence[Document],
    found: PairEvidence,
    stories: Stories,
    dates: Float64Array,
    certified: Promise | None,
    metadata: Mapping[str, Any],
) -> Groups:
    """Return the groups with the documents' ids, in the order in which the index holds them."""
    order = np.argsort(collection.rows.locate([d.id for d in documents]))
    told = list(stories.groups())
    passages = dict(p for story in told for p in _passages(collection, documents, stories, story))
    place = np.argsort(order)
    number: dict[int, int] = {}
    members = []
    for i in order.tolist():
        label, lead, belongs = int(stories.labels[i]), int(stories.leader[i]), float(stories.belongs[i])
        members.append(
            Member(
                documents[i].id,
                number.setdefault(label, len(number) + 1),
                None if np.isnan(belongs) else round(belongs, 4),
                documents[lead].id if lead != i else None,
                _iso(dates[i]) if np.isfinite(dates[i]) else None,
                passages.get(i),
            )
        )
    analysis = Analysis(collection.manifest.analysis)
    groups = []
    for story in told:
        inside = story.members[np.argsort(place[story.members])]
        words, names = _words(analysis, documents[story.medoid].full_text, found, story.members)
        known = dates[inside][np.isfinite(dates[inside])]
        weak = story.weakest
        representative = documents[story.medoid]
        groups.append(
            Group(
                number[story.label],
                tuple(documents[i].id for i in inside.tolist()),
                one_line(representative.title or representative.text, TITLE),
                representative.id,
                round(story.probability, 4),
                words,
                names,
                (documents[weak[0]].id, documents[weak[1]].id, round(weak[2], 4)) if weak else None,
                tuple(documents[i].id for i in story.leaving.tolist()),
                (_iso(known.min()), _iso(known.max())) if len(known) else None,
            )
        )
    return Groups(tuple(members), tuple(sorted(groups, key=lambda g: g.number)), certified, dict(metadata))


def _passages(
    collection: AnyCollection, documents: Sequence[Document], stories: Stories, story: ScoredStory
) -> Iterator[tuple[int, Span | None]]:
    """Yield the members of a story, each with its passage by the medoid; the medoid's is by the first other text."""
    members, medoid = story.members.tolist(), story.medoid
    other = next((i for i in members if stories.leader[i] == i != medoid), medoid)
    for i in members:
        like = documents[other if i == medoid else medoid].full_text
        yield i, evidence(collection, like, documents[i].text).passage


def _words(
    analysis: Analysis, text: str, found: PairEvidence, members: Int64Array
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the weightiest words in most members, as written in the representative's `text`, and the names."""
    part = found.texts[members]
    shared = np.bincount(part.indices, minlength=part.shape[1]) > len(members) / 2
    weight = np.bincount(part.indices, part.data, part.shape[1]) * shared
    best = np.argsort(-weight, kind="stable")[:WORDS]
    wanted = [int(found.hashes[column]) for column in best.tolist() if weight[column] > 0]
    written: dict[int, str] = {}
    text = without_frame(text)
    for start, end, terms in words_in(analysis, text):
        for term in terms.intersection(analysis.content_terms(analysis.prepare(text[start:end]))):
            written.setdefault(term_hash(term), text[start:end])
    words = tuple(dict.fromkeys(written[h] for h in wanted if h in written))
    return words, tuple(w for w in words if not w.islower() and (w[0].isupper() or any(map(str.isdigit, w))))


def _iso(day: float) -> str:
    return date.fromordinal(int(day)).isoformat()
