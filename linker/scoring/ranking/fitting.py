"""Fitting a calibrated ranker on lists of linked pages with out-of-fold features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.base.errors import InputError
from linker.scoring.probability.competition import ANY, ONE, compete, spread
from linker.scoring.probability.promise import best_f1, least_probability
from linker.scoring.probability.verification import Verifier, first_candidates, fit_calibrated, names_of
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker
from linker.scoring.ranking.calibration import slope_of
from linker.scoring.ranking.linear import PENALTY, LinearRanker, fit_ranker
from linker.scoring.ranking.lists import CandidateLists, Chances, Fold, align

FEWEST = 20  # minimum number of links from which a ranker is learned
SHARPEST = np.exp(2)  # steepest slope of the logits: if all links were found, any slope would fit
# A link is contradicted if another candidate has at least this log odds against all others, and the linked target has
# at most this log odds against it. Such links are left out of the fit if they are more than this share of all: up to
# one in a hundred correct links look contradicted, and a fit without them would be overconfident.
CLEAR, HOPELESS, DOUBTFUL = np.log(9), -5.0, 0.02


@dataclass(frozen=True, eq=False)
class Held:
    """The first candidates of n linked pages in lists with and without their targets, with out-of-fold features.

    `linked` and `alone` [n]: their probabilities with and without the targets, at the share of the pages to link;
    `right` [n]: whether the first candidates of `linked` are right.
    """

    linked: Float64Array
    right: BoolArray
    alone: Float64Array

    def mixture(self, share: float, seed: int = 0) -> tuple[Float64Array, BoolArray]:
        """Return the largest random sample with a `share` of linked pages: probabilities [m], whether right [m]."""
        n = len(self.right)
        size = n / max(share, 1 - share, 0.5)
        rng = np.random.default_rng(seed)
        linked, alone = (rng.permutation(n)[: round(part * size)] for part in (share, 1 - share))
        p = np.concatenate([self.linked[linked], self.alone[alone]])
        return p, np.concatenate([self.right[linked], np.zeros(len(alone), bool)])


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A calibrated ranker, the probabilities of the pages to link, and those of held-out linked pages.

    `probabilities` float64 [n, c + 1], the last column for "no link"; `share`: the expected or estimated share of
    pages with a counterpart; `quality`: the mean log likelihood of the known links out of fold, NaN without links;
    `held_out`: linked pages with and without their targets among the candidates; `contradicted` int64 [k]: source
    rows whose known links look wrong and were not used for the probabilities.
    """

    model: CalibratedRanker
    probabilities: Float64Array
    share: float
    quality: float = float("nan")
    held_out: tuple[Chances, Chances] | None = None
    contradicted: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    def least_probability(
        self, at_least: float, precision: float | None, expected: float | None
    ) -> tuple[float, dict[str, Any]]:
        """Return the P(link) needed to keep a link, and the metadata entries on it and on the share of linked pages.

        The promise is tested on held-out links, mixed with lists without their targets so that the share of linked
        pages matches the pages to link; `expected` is this share, if given.
        """
        sample = None
        if self.held_out and precision:
            linked, orphaned = self.held_out
            sample = Held(linked.first, linked.right, orphaned.first).mixture(self.share)
        threshold, promised = least_probability(at_least, precision, sample)
        share = {"estimated" if expected is None else "expected": round(self.share, 4)}
        best = best_f1(self.probabilities[:, :-1].max(axis=1, initial=0), self.share)
        return threshold, {"min_probability": at_least, "linked_share": share, "best_f1": best, **promised}


def learn_ranker(
    lists: CandidateLists,
    parts: Sequence[Fold],
    start: CalibratedRanker | None,
    expected: float | None = None,
    divisions: int = 1,
) -> FittedRanker:
    """Learn a ranker and a verifier from the folds `parts`, and return them with the probabilities of `lists`.

    `parts` holds the folds of all `divisions`, one division after another: a page counts as much as with one division,
    and is judged only by models that were not fitted on it. Without folds, `start` is applied, standardised on `lists`
    if it was learned elsewhere. `expected`: the share of pages with a counterpart, if it is known. Raises InputError if
    folds and `start` are both missing.
    """
    start = start and adapt(start, lists)
    if not parts:
        if start is None:
            raise InputError(
                f"this method learns its ranker from linked pages: pass at least {FEWEST} (`train` QRELS)"
            )
        lists = replace(
            lists, features=align(lists, start.ranker.names, start.ranker.centre), names=start.ranker.names
        )
        return _apply(start, _Scored.of(lists, start.ranker.logits(lists.features)), expected)
    ranker, linked, alone = _cross_fit(parts, start, divisions)
    contradicted = [_contradictions(s, p) for s, p in zip(linked, parts, strict=True)]
    wrong = np.concatenate([p.lists.rows[c] for p, c in zip(parts, contradicted, strict=True)])
    if len(wrong) > DOUBTFUL * sum(len(p.right) for p in parts):
        parts = [p.only(~c) for p, c in zip(parts, contradicted, strict=True)]
        ranker, linked, alone = _cross_fit(parts, start, divisions)
    else:
        wrong = wrong[:0]
    pages = _Scored.of(lists, ranker.logits(lists.features))
    linked, alone = ([s.against(pages) for s in group] for group in (linked, alone))
    right = [s.won[:, :-1].argmax(axis=1) == p.right for s, p in zip(linked, parts, strict=True)]
    x, y = ([s.features(ranker) for s in group] for group in (linked, alone))
    prior, names = start.verifier if start else None, names_of(ranker)

    rows = [part.lists.rows for part in parts]
    verifier, checks = fit_calibrated(names, rows, x, right, y, prior, divisions)
    fitted = _apply(CalibratedRanker(ranker, verifier), pages, expected)
    first = slice(len(parts) // divisions)  # only the first division, so that a test counts each page once
    with_targets, without = (
        _judged(parts[first], group[first], checks[first], features[first], fitted.share)
        for group, features in ((linked, x), (alone, y))
    )
    wrong = np.unique(wrong)
    return replace(
        fitted, quality=_quality(linked, parts), held_out=(with_targets, without), contradicted=wrong
    )


@dataclass(frozen=True, eq=False)
class _Scored:
    """Lists with the ranker's `logits` and the probabilities `won` after competition: float64 [n, c + 1]."""

    lists: CandidateLists
    logits: Float64Array
    won: Float64Array

    @classmethod
    def of(cls, lists: CandidateLists, logits: Float64Array) -> _Scored:
        return cls(lists, logits, compete(logits, lists.targets, ONE if lists.exclusive else ANY))

    def against(self, others: _Scored) -> _Scored:
        """Return the same lists after competition with the pages of `others` for the same targets."""
        logits, targets = (self.logits, others.logits), (self.lists.targets, others.lists.targets)
        won = compete(np.concatenate(logits), np.concatenate(targets), ONE if self.lists.exclusive else ANY)
        return replace(self, won=won[: len(self.won)])

    def features(self, ranker: LinearRanker) -> Float64Array:
        return first_candidates(ranker, self.lists.features, self.logits, self.won)


def _cross_fit(
    parts: Sequence[Fold], start: CalibratedRanker | None, divisions: int
) -> tuple[LinearRanker, list[_Scored], list[_Scored]]:
    """Return the ranker, and each fold scored by the ranker of the other pages, with and without its targets."""
    names, prior = parts[0].lists.names, start.ranker if start else None

    def fit(some: Sequence[Fold]) -> LinearRanker:
        features = np.concatenate([p.lists.features for p in some])
        right = np.concatenate([p.right for p in some])
        return fit_ranker(names, features, right, penalty=divisions * PENALTY, prior=prior)

    rankers = [fit([p.without_pages(part.lists.rows) for p in parts]) for part in parts]
    logits = [r.logits(p.lists.features) for r, p in zip(rankers, parts, strict=True)]
    t = temperature(np.concatenate(logits), np.concatenate([p.right for p in parts]))
    linked = [_Scored.of(p.lists, x / t) for p, x in zip(parts, logits, strict=True)]
    alone = [
        _Scored.of(p.without, r.logits(p.without.features) / t) for p, r in zip(parts, rankers, strict=True)
    ]
    return replace(fit(parts), temperature=t), linked, alone


def _judged(
    parts: Sequence[Fold],
    scored: Sequence[_Scored],
    checks: Sequence[Verifier],
    features: Sequence[Float64Array],
    share: float,
) -> Chances:
    """Return the chances of the pages of `parts`, each by the verifier of the others."""
    p = [spread(s.won, check(x, share)) for s, check, x in zip(scored, checks, features, strict=True)]
    lists = [s.lists for s in scored]
    rows, targets = (np.concatenate([getattr(each, name) for each in lists]) for name in ("rows", "targets"))
    return Chances(rows, targets, np.concatenate(p), np.concatenate([part.linked for part in parts]))


def _contradictions(scored: _Scored, part: Fold) -> BoolArray:
    """Return which linked pages [n] have a clear counterpart that is not their linked target."""
    n, scores = np.arange(len(part.right)), scored.logits[:, :-1].copy()
    linked = np.where(part.right >= 0, scores[n, part.right], -np.inf)
    top = scores.argmax(axis=1)
    best = scores[n, top]
    scores[n, top] = -np.inf
    clear = best - logsumexp(scores, axis=1) >= CLEAR
    return np.asarray(clear & (linked - best <= HOPELESS))


def _apply(model: CalibratedRanker, pages: _Scored, expected: float | None) -> FittedRanker:
    x = pages.features(model.ranker)
    share = model.verifier.share(x) if expected is None else expected
    return FittedRanker(model, spread(pages.won, model.verifier(x, share)), share)


def _quality(linked: Sequence[_Scored], parts: Sequence[Fold]) -> float:
    won, right = np.concatenate([s.won for s in linked]), np.concatenate([p.right for p in parts])
    chosen = won[np.arange(len(won)), np.where(right >= 0, right, won.shape[1] - 1)]
    return float(np.log(chosen + 1e-6).mean())


def adapt(start: CalibratedRanker, lists: CandidateLists) -> CalibratedRanker:
    """Return `start`, restandardised on the `lists` to link if it was learned elsewhere."""
    if not start.elsewhere:
        return start
    features = align(lists, start.ranker.names, start.ranker.centre)
    return CalibratedRanker(start.ranker.restandardise(features), start.verifier)


def temperature(logits: Float64Array, right: Int64Array) -> float:
    """Return the divisor of `logits` [n, c + 1] that makes the `right` columns [n] most likely; −1 is the last."""
    last = logits.shape[1] - 1
    return 1 / slope_of(logits, np.arange(last + 1) == np.where(right >= 0, right, last)[:, None], SHARPEST)
