"""The method `auto`: all available evidence, a ranker learned from links, probabilities, one-to-one competition.

It works with dictionaries, with links, and with both. Without enough links it uses a ranker that was pooled over
training pages of several language pairs (pooled.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.crosslingual.ranking.describing import describe
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.folds import divisions_of, folds_of
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.learning import list_size, out_of_fold
from linker.scoring.ranking.fitting import FEWEST, FittedRanker, learn_ranker
from linker.scoring.ranking.lists import CandidateLists, Chances, Fold

CROSS_FITS = 3
NOTHING = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Solution:
    """The candidates of n unlinked pages, what links have taught, and the fitted models with their probabilities.

    `extra` int64 [e, 2]: links added by self-training; `recall`: the share of known links whose target is among the
    candidates, out of fold.
    """

    lists: CandidateLists
    learned: Learned
    fitted: FittedRanker
    extra: Int64Array
    recall: float | None = None

    @property
    def probabilities(self) -> Float64Array:
        """Probabilities of the candidates, the last column for "no link": float64 [n, c + 1]."""
        return self.fitted.probabilities

    @property
    def chances(self) -> Chances:
        """The candidates of the unlinked pages with their probabilities."""
        rows, targets = self.lists.rows, self.lists.targets
        return Chances(rows, targets, self.probabilities, np.full(len(rows), -1))

    @property
    def quality(self) -> float:
        """The mean log likelihood of the known links out of fold, NaN with fewer than 20."""
        return self.fitted.quality

    def best(self) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Return each page's row and most probable target (int64 [n]), and that probability (float64 [n])."""
        columns = self.probabilities[:, :-1].argmax(axis=1)
        n = np.arange(len(columns))
        return self.lists.rows, self.lists.targets[n, columns], self.probabilities[n, columns]


def solve(
    evidence: AllEvidence,
    links: Int64Array,
    *,
    seed: int = 0,
    expected: float | None = None,
    advance: Callable[[int], object] = lambda count: None,
) -> Solution:
    """Rank targets for every source page that is not in `links` (int64 [l, 2]), excluding the linked targets.

    `expected`: the share of these pages that have a counterpart; without it, the share is estimated. `advance` is
    called with numbers of finished pages. Raises InputError if every target is linked, or if the evidence has no
    pooled ranker and there are fewer than 20 links.
    """
    unlinked = np.setdiff1d(np.arange(len(evidence.source)), links[:, 0])
    return relearn(evidence, links, NOTHING, unlinked, seed, expected, advance)


def relearn(
    evidence: AllEvidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    seed: int,
    expected: float | None = None,
    advance: Callable[[int], object] = lambda count: None,
) -> Solution:
    """Return the solution of the source rows `unlinked`, learned from `links` and from the pseudo-links `extra`."""
    taken = links[:, 1] if evidence.exclusive else links[:0, 1]
    lists, learned = describe_unlinked(evidence, links, extra, unlinked, taken, seed, advance)
    parts: list[Fold] = []
    divisions = divisions_of(links)
    if len(links) >= FEWEST:
        parts = out_of_fold(
            evidence,
            links,
            unlinked,
            extra=extra,
            learned=learned,
            seed=seed,
            divisions=divisions,
            advance=advance,
        )
    start = evidence.start("links" if len(links) else "pseudo-links" if len(extra) else "nothing")
    recalled = np.concatenate([part.right >= 0 for part in parts]) if parts else None
    recall = None if recalled is None else float(recalled.mean())
    fitted = learn_ranker(lists, parts, start, expected, divisions)
    return Solution(lists, learned, fitted, extra, recall)


def describe_unlinked(
    evidence: AllEvidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    taken: Int64Array,
    seed: int = 0,
    advance: Callable[[int], object] = lambda count: None,
) -> tuple[CandidateLists, Learned]:
    """Describe the source rows `unlinked`, each without what was learned from its own pseudo-link in `extra`.

    The targets `taken` are not candidates. Returns the lists, and what is learned from `links` and all of `extra`.
    """
    learned = evidence.learn(np.concatenate([links, extra]))
    size = list_size(evidence, links, seed=seed)
    if not len(extra):
        return describe(evidence, learned, unlinked, unlinked[:0], (taken,), size, advance)[0], learned
    parts = []
    for fold in folds_of(unlinked[:, None], evidence.source, CROSS_FITS, seed):
        group = unlinked[fold]
        others = np.concatenate([links, extra[~np.isin(extra[:, 0], group)]])
        rest = np.setdiff1d(unlinked, group)
        parts += describe(evidence, evidence.learn(others), np.sort(group), rest, (taken,), size, advance)
    rows = np.concatenate([p.rows for p in parts])
    back = np.argsort(rows, kind="stable")
    targets, features = (
        np.concatenate([getattr(p, name) for p in parts])[back] for name in ("targets", "features")
    )
    return replace(parts[0], rows=rows[back], targets=targets, features=features), learned
