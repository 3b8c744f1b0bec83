"""Precision, recall and F1 of the links predicted by a run, as in the shared tasks BUCC 2017 and 2018.

Zweigenbaum, Sharoff and Rapp (2017): Overview of the second BUCC shared task. Every link counts, so linking a page
without a counterpart costs precision.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.evaluation.evaluator import Resampling
from linker.evaluation.result import Interval
from linker.evaluation.significance import bootstrap_of, randomisation_of

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]
Link = tuple[str, float]  # a target and the link's score


@dataclass(frozen=True, eq=False)
class MinedLinks:
    """Each page's contribution to the numbers of correct, predicted and gold links (`counts`, int64 [n, 3]).

    `pages`: pages with a gold link, then other pages of the run. `threshold`: the minimum score of a predicted link;
    `unjudged`: the number of predicted links of pages without a gold link.
    """

    pages: tuple[str, ...]
    counts: Int64Array
    threshold: float | None
    unjudged: int

    @property
    def links(self) -> int:
        """Number of predicted links."""
        return int(self.counts[:, 1].sum())

    @property
    def precision(self) -> float:
        """Share of the predicted links that are correct; 0 without links."""
        return float(precision(self._sums)[0])

    @property
    def recall(self) -> float:
        """Share of the gold links that are predicted."""
        return float(recall(self._sums)[0])

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return float(f1(self._sums)[0])

    @property
    def _sums(self) -> Float64Array:
        return np.asarray(self.counts.sum(axis=0, keepdims=True), np.float64)

    def intervals(self, how: Resampling) -> dict[str, Interval]:
        """Return bootstrap intervals of precision, recall and F1 over the pages; the threshold is fixed."""
        return {
            name: bootstrap_of(
                measure, self.counts, samples=how.samples, confidence=how.confidence, seed=how.seed
            )
            for name, measure in MEASURES.items()
        }


def precision(sums: Float64Array) -> Float64Array:
    """Return correct / predicted links from their sums [b, 3]; 0 if none is predicted."""
    return sums[:, 0] / np.maximum(sums[:, 1], 1)


def recall(sums: Float64Array) -> Float64Array:
    """Return correct / gold links from their sums [b, 3]; 0 if there is no gold link."""
    return sums[:, 0] / np.maximum(sums[:, 2], 1)


def f1(sums: Float64Array) -> Float64Array:
    """Return 2 correct / (predicted + gold) links from their sums [b, 3]."""
    return 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)


MEASURES = {"precision": precision, "recall": recall, "f1": f1}


def mined_links(
    qrels: Qrels, run: Run, threshold: float | None = None, known: Collection[str] = ()
) -> MinedLinks:
    """Count the links of a run: the first target of each page is predicted if its score reaches `threshold`.

    A page without a gold link has no counterpart, so a link predicted for it is wrong; pages in `known` are left out.
    With equal scores, the target with the greatest id is first, as in trec_eval.
    """
    gold = {page: {t for t, relevance in judged.items() if relevance > 0} for page, judged in qrels.items()}
    stated = first_links(run, known)
    pages = [page for page in gold if page not in known]
    pages += [page for page in stated if page not in gold]
    counts = np.zeros((len(pages), 3), np.int64)
    unjudged = 0
    for row, page in enumerate(pages):
        targets = gold.get(page, set())
        counts[row, 2] = len(targets)
        link = stated.get(page)
        if link is not None and (threshold is None or link[1] >= threshold):
            counts[row, :2] = link[0] in targets, 1
            unjudged += page not in gold
    return MinedLinks(tuple(pages), counts, threshold, unjudged)


def first_links(run: Run, known: Collection[str] = ()) -> dict[str, Link]:
    """Return the first target of every page and its score, without the pages in `known`."""
    links = {}
    for page, targets in run.items():
        if targets and page not in known:
            score, target = max((score, target) for target, score in targets.items())
            links[page] = (target, score)
    return links


def best_threshold(qrels: Qrels, run: Run, known: Collection[str] = ()) -> float:
    """Return the oracle threshold: the highest that maximises F1 on these gold links, which a system cannot know."""
    mined = mined_links(qrels, run, None, known)
    scores = {page: link[1] for page, link in first_links(run, known).items()}
    linked = [
        (scores[page], int(mined.counts[row, 0])) for row, page in enumerate(mined.pages) if page in scores
    ]
    linked.sort(key=lambda link: -link[0])
    values = np.array([score for score, _ in linked])
    correct = np.cumsum([right for _, right in linked])
    stated = np.arange(1, len(linked) + 1)
    measure = 2 * correct / (stated + mined.counts[:, 2].sum())
    measure[:-1][values[:-1] == values[1:]] = -1.0  # a threshold accepts all links of equal score
    return float(values[int(np.argmax(measure))])


def compare_f1(baseline: MinedLinks, other: MinedLinks, how: Resampling) -> tuple[float, float, float, float]:
    """Return the F1 of `other` minus that of `baseline`, its bootstrap interval (low, high), and the p-value.

    The runs are paired by page, and have the same gold links. The p-value is that of the randomisation test, two-sided.
    """
    a, b = _aligned(baseline, other)
    low, high = bootstrap_of(
        lambda sums: f1(sums[:, 3:]) - f1(sums[:, :3]),
        np.concatenate((a, b), axis=1),
        samples=how.samples,
        confidence=how.confidence,
        seed=how.seed,
    )
    p = randomisation_of(f1, a, b, samples=how.samples, seed=how.seed)
    return other.f1 - baseline.f1, low, high, p


def _aligned(a: MinedLinks, b: MinedLinks) -> tuple[Int64Array, Int64Array]:
    row = {page: i for i, page in enumerate(dict.fromkeys((*a.pages, *b.pages)))}
    counts = np.zeros((2, len(row), 3), np.int64)
    for which, mined in enumerate((a, b)):
        counts[which, [row[page] for page in mined.pages]] = mined.counts
    return counts[0], counts[1]
