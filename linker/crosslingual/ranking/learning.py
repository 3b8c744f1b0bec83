"""Candidate lists of linked pages, described out of fold: what the ranker learns from."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from indexes.dtypes import Int64Array
from linker.base.errors import InputError
from linker.crosslingual.ranking.describing import describe, free_targets, retrieve_taught
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.folds import FOLDS, divisions_of, held_out
from linker.crosslingual.ranking.interface import Learned
from linker.scoring.ranking.lists import CandidateLists, Fold

# Minimum number of pairs of pages at which the folds share the retrieval of competitors, the slowest step.
ONCE = 1 << 27


def out_of_fold(
    evidence: AllEvidence,
    links: Int64Array,
    unlinked: Int64Array,
    *,
    extra: Int64Array | None = None,
    absent: Int64Array | None = None,
    learned: Learned | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    divisions: int = 1,
    advance: Callable[[int], object] = lambda count: None,
) -> list[Fold]:
    """Describe every linked page, with and without its target, as learned from the other folds' links and `extra`.

    `links` and `extra`: int64 [l, 2] and [e, 2]; `unlinked`: int64 rows. The targets of the other folds are excluded,
    unless pages may share targets, and the unlinked pages compete for targets, as they do when they are linked
    themselves. The folds of the `divisions` follow each other, and each division describes every page once. `absent`:
    targets that no page can be linked to; `learned`: the result of learning from all links and `extra`, if it is known.
    Raises InputError if every target is linked.
    """
    parts = []
    size = list_size(evidence, links, folds, seed)
    absent = links[:0, 1] if absent is None else absent
    known = np.concatenate([links[:, 1], absent]) if evidence.exclusive else absent
    if learned is None:
        learned = evidence.learn(links if extra is None else np.concatenate([links, extra]))
    # Learning from all links retrieves different competitors than a fold's links, so only large tasks do this.
    once = len(evidence.source) * len(evidence.target) >= ONCE
    retrieved = retrieve_taught(
        evidence, learned, unlinked if once else unlinked[:0], free_targets(evidence, known)
    )
    for held in held_out(links, evidence.source, folds, seed, divisions):
        rest = np.delete(links, held, axis=0)
        rows = np.unique(links[held, 0])
        teachers = rest if extra is None else np.concatenate([rest, extra])
        taught, theirs = evidence.learn(teachers), links[held, 1]
        others = np.concatenate([np.setdiff1d(rest[:, 1], theirs), absent]) if evidence.exclusive else absent
        todo = rows if once else np.concatenate([rows, unlinked])
        pairs = retrieved | retrieve_taught(evidence, taught, todo, free_targets(evidence, others))
        away = np.concatenate([known, theirs])
        lists, without = describe(evidence, taught, rows, unlinked, (others, away), size, advance, pairs)
        parts.append(once_per_target(lists, without, links[held]))
    return parts


def once_per_target(lists: CandidateLists, without: CandidateLists, links: Int64Array) -> Fold:
    """Return a fold in which a page with several targets among `links` (int64 [l, 2]) has a list for each of them.

    In each list, the page's last other candidate replaces its further targets.
    """
    gold: dict[int, set[int]] = {}
    for row, column in links.tolist():
        gold.setdefault(row, set()).add(column)
    places, pages, right = [], [], []
    everywhere = np.arange(lists.targets.shape[1])
    for i, (row, targets) in enumerate(zip(lists.rows.tolist(), lists.targets, strict=True)):
        linked = np.flatnonzero(np.isin(targets, list(gold.get(row, ()))))
        others = np.setdiff1d(everywhere, linked)
        for place in linked.tolist() if len(others) else linked[:1].tolist():
            replaced = np.isin(everywhere, linked) & (everywhere != place) & (len(others) > 0)
            places.append(np.where(replaced, others[-1] if len(others) else 0, everywhere))
            pages.append(i)
            right.append(place)
        if not len(linked):
            places.append(everywhere)
            pages.append(i)
            right.append(-1)
    if len(pages) == len(lists.rows):
        return Fold(lists, np.array(right, np.int64), without)
    order, at = np.array(pages, np.int64), np.stack(places)
    targets = np.take_along_axis(lists.targets[order], at, axis=1)
    features = np.take_along_axis(lists.features[order], at[:, :, None], axis=1)
    many = replace(lists, rows=lists.rows[order], targets=targets, features=features)
    absent = replace(
        without, rows=without.rows[order], targets=without.targets[order], features=without.features[order]
    )
    return Fold(many, np.array(right, np.int64), absent)


def list_size(evidence: AllEvidence, links: Int64Array, folds: int = FOLDS, seed: int = 0) -> int:
    """Return the number of candidates per list: the evidence's size, or the number of unlinked targets, if smaller.

    `links`: int64 [l, 2]; if pages may share targets, only those of one of the `folds` count as linked. Raises
    InputError if every target is linked.
    """
    linked = [links[:, 1]]
    if not evidence.exclusive and len(links):
        parts = held_out(links, evidence.source, folds, seed, divisions_of(links))
        linked = [links[part, 1] for part in parts]
    free = len(evidence.target) - max(len(np.unique(targets)) for targets in linked)
    if not free:
        raise InputError("the training links cover every target page: no page is left to link to")
    return min(evidence.size, free)
