"""A corpus linked with itself: which of its documents are near copies, or about one story."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from linker.scoring.groups.asking import Stratum, recall, strata
from linker.scoring.groups.copies import leaders, without_frame
from linker.scoring.groups.dates import days_of, iso, near_in_time, stated
from linker.scoring.groups.evidence import BY_VECTORS, PairEvidence
from linker.scoring.groups.finding import gather, origin
from linker.scoring.groups.judged import Judged, judged_of
from linker.scoring.groups.kept import LastGrouping
from linker.scoring.groups.shipped import SHIPPED
from linker.scoring.groups.stories import Stories, stories_of
from linker.scoring.probability.promise import Promise, promise

ALIKE = 0.5  # minimum cosine of near copies
TITLE, WORDS = 100, 8  # maximum characters of a title, words of a group


@dataclass(frozen=True, slots=True)
class Member:
    """A document in its group: P(it belongs to the other members), None if alone; the document it copies; its day.

    `date` is in ISO 8601, None if the document has none.
    """

    id: str
    group: int
    probability: float | None = None
    near_copy_of: str | None = None
    date: str | None = None


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
    verdicts estimate how many pairs are missed. `recall`: the estimated share of right pairs that is within groups, and
    the ends of its 95 % interval; None unless all pairs of these strata are judged, and were used only for the test.
    """

    members: tuple[Member, ...]
    groups: tuple[Group, ...]
    promise: Promise | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    strata: tuple[Stratum, ...] = field(default=(), repr=False)
    recall: tuple[float, float, float] | None = None

    def numbered(self, number: Mapping[int, int]) -> Groups:
        """Return the same groups with different numbers."""
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


def group(
    collection: AnyCollection,
    corpus: Sequence[Document],
    rows: Int64Array,
    judged: Mapping[tuple[str, str], bool] | None = None,
    *,
    days: float | None = None,
    precision: float | None = None,
    seed: int = 0,
    kept: LastGrouping | None = None,
) -> Groups:
    """Return the groups of documents, which are in these `rows` (int64 [n]) of an index; see `Engine.group`.

    The results in `kept` are not computed again.
    """
    if not corpus:
        raise InputError("the index holds no documents: there is nothing to group")
    order, dates = _ordered(corpus)
    documents, rows = [corpus[i] for i in order.tolist()], rows[order]
    place = {d.id: i for i, d in enumerate(documents)}
    known = judged_of(judged or {}, place, halved=precision is not None, seed=seed)
    if precision is not None and not len(known):
        raise InputError("a promised precision is tested on judged pairs: pass them with `train`")
    ids, texts = [d.id for d in documents], [d.full_text for d in documents]
    made = origin(collection) if kept else ""
    known_pairs = kept.known(ids, made) if kept else None
    new = int(known_pairs[1].sum()) if known_pairs else len(ids)
    with bar(new, "finding pairs", "documents") as meter:
        found, findings, queries = gather(
            collection, rows, texts, stated(texts, dates), meter.update, known_pairs
        )
    if kept:
        kept.take(ids, made, findings, full=known_pairs is None)
    if days is not None:
        found = found.where(near_in_time(found.pairs, dates, days))
    leader = leaders(len(documents), found.pairs[found.cosine >= ALIKE], texts.__getitem__)
    probabilities, learned = _probabilities(found, known)
    stories = stories_of(found, probabilities, leader)
    certified, tested, share = None, 0, None
    if precision is not None:
        scores, right = known.within(stories)
        tested = len(right)
        certified = promise(scores, right, precision)
        least = certified.threshold if certified else np.inf
        share = _recall(
            strata(stories, ids, seed),
            judged or {},
            known,
            right & (scores >= least),
            right & (scores < least),
        )
        stories = stories.at_least(least)
        _report(certified, precision, tested)
    metadata = {
        "documents": len(documents), "queries": queries, "pairs": len(found.pairs), "judged_pairs": len(judged or {}),
        "learned_from": learned, "tested_on": tested, "days": days,
    }  # fmt: skip
    analysis = Analysis(collection.manifest.analysis)
    named = _named(analysis, documents, order, found, stories, dates, certified, metadata, kept)
    return replace(named, strata=strata(stories, ids, seed), recall=share)


def _probabilities(found: PairEvidence, known: Judged) -> tuple[Float64Array, int]:
    """Return P(same story) of the pairs, float64 [m], and the number of judged pairs learned from."""
    at, same = known.labels(found.pairs)
    if len(at):
        model = SHIPPED.with_vectors(found) if BY_VECTORS[0] in found.names else SHIPPED
        chosen = np.zeros(len(found.pairs), bool)
        chosen[at] = True
        logger.info("P(same story) also knows %s judged pairs", f"{len(at):,}")
        return model.learned(found.where(chosen), same).probabilities(found), len(at)
    return SHIPPED.probabilities(found), 0


def _recall(
    drawn: Sequence[Stratum],
    judged: Mapping[tuple[str, str], bool],
    known: Judged,
    kept: BoolArray,
    lost: BoolArray,
) -> tuple[float, float, float] | None:
    """Return the recall of groups and its interval; None unless all pairs drawn between groups are judged.

    `kept` and `lost` [t]: which of the tested pairs within groups are right and still within one, or no longer are.
    """
    within, *between = drawn
    if known.complete or not all(pair in judged for stratum in between for pair in stratum.pairs):
        return None
    inside = [(within.of, len(kept), int(right.sum())) for right in (kept, lost)]
    outside = [(s.of, len(s.pairs), sum(judged[pair] for pair in s.pairs)) for s in between]
    found = recall([*inside, *outside])
    logger.info("recall of the pairs that were compared: %.2f [%.2f, %.2f]", *found)
    return found


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


def _ordered(documents: Sequence[Document]) -> tuple[Int64Array, Float64Array]:
    """Return the order of documents by date and id, int64 [n], and their dates in this order, [n].

    Groups then do not depend on the corpus' order, and the first of near copies is the earliest.
    """
    dates = days_of(documents)
    known = np.nan_to_num(dates, nan=np.inf)
    ids = [d.id for d in documents]
    order = np.array(sorted(range(len(ids)), key=lambda i: (known[i], len(ids[i]), ids[i])), np.int64)
    return order, dates[order]


def _named(
    analysis: Analysis,
    documents: Sequence[Document],
    place: Int64Array,
    found: PairEvidence,
    stories: Stories,
    dates: Float64Array,
    certified: Promise | None,
    metadata: Mapping[str, Any],
    kept: LastGrouping | None,
) -> Groups:
    """Return the groups with the documents' ids, in the corpus' order: `place` int64 [n] is each one's position."""
    told = list(stories.groups())
    number: dict[int, int] = {}
    members = []
    for i in np.argsort(place).tolist():
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
    for story in told:
        inside = story.members[np.argsort(place[story.members])]
        representative = documents[story.medoid]
        make = functools.partial(_words, analysis, representative.full_text, found, story.members)
        ids = tuple(documents[i].id for i in inside.tolist())
        words = kept.words_of((representative.id, *ids), make) if kept else make()
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


def _words(analysis: Analysis, text: str, found: PairEvidence, members: Int64Array) -> tuple[str, ...]:
    """Return the weightiest words in most members, as written in the representative's `text`."""
    part = found.texts[members]
    columns, at = np.unique(part.indices, return_inverse=True)
    weight = np.bincount(at, part.data) * (np.bincount(at) > len(members) / 2)
    best = np.argsort(-weight, kind="stable")[:WORDS]
    wanted = found.hashes[columns[best[weight[best] > 0]]].tolist()
    written: dict[int, str] = {}
    text = without_frame(text)
    for start, end, terms in words_in(analysis, text):
        for term in terms.intersection(analysis.content_terms(analysis.prepare(text[start:end]))):
            written.setdefault(term_hash(term), text[start:end])
    return tuple(dict.fromkeys(written[h] for h in wanted if h in written))
