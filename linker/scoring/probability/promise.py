"""The lowest threshold whose links keep a precision, with a proof: Learn then Test.

Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test" (2021): each threshold is a hypothesis ("the precision
above it is at most the promised one"), tested by an exact binomial tail on links unseen in fitting. Thresholds fall
along fixed sequences, and each sequence ends at its first failed test, so that no error is spent twice.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from linker.base.logs import logger

DELTA = 0.05
FEWEST = 40  # number of links at which the first sequence starts
SHARES = (0.10, 0.25, 0.50)  # further sequences start at these shares of all links
STEP = 0.02  # each step of a sequence adds this share of all links


@dataclass(frozen=True, slots=True)
class Promise:
    """Links with probability `threshold` or more have at least this `precision`, with error probability `delta`.

    Of `held` held-out links, `links` reach the threshold, and `right` of these are right.
    """

    precision: float
    threshold: float
    links: int
    right: int
    held: int
    delta: float = DELTA

    @property
    def coverage(self) -> float:
        """The share of the held-out links that the threshold keeps."""
        return self.links / self.held

    def __str__(self) -> str:
        return (
            f"P(link) ≥ {self.threshold:.3f} keeps a precision of {self.precision:g} with {1 - self.delta:.0%} "
            f"confidence: {self.right} of {self.links} held-out links are right, and {self.coverage:.0%} of "
            "the queries keep theirs"
        )


def tail(links: int, right: int, precision: float) -> float:
    """Return P(Binomial(links, precision) ≥ right), the p-value of `right` links if the promise is broken."""
    from scipy.special import bdtrc

    return float(bdtrc(right - 1, links, precision)) if right > 0 else 1.0


def promise(
    probabilities: Float64Array, right: BoolArray, precision: float, delta: float = DELTA
) -> Promise | None:
    """Return the certified threshold that keeps the most links, or None if none is certified.

    `probabilities` [n] belong to held-out links, one link per query, and `right` [n] says which of them are right. If
    these are exchangeable with future links, the precision above the threshold is below the promised one in at most a
    share `delta` of such samples.
    """
    order = np.argsort(-probabilities, kind="stable")
    scores, found = probabilities[order], np.cumsum(right[order])
    count = len(scores)
    part = delta / (1 + len(SHARES))  # share of the error spent by each sequence
    least = fewest(precision, part)
    best: Promise | None = None
    for start in (FEWEST, *(round(share * count) for share in SHARES)):
        for size in _sizes(scores, max(start, least)):
            hits = int(found[size - 1])
            if tail(size, hits, precision) > part:
                break
            if best is None or size > best.links:
                best = Promise(precision, float(scores[size - 1]), size, hits, count, delta)
    return best


def least_probability(
    at_least: float, precision: float | None, held: tuple[Float64Array, BoolArray] | None
) -> tuple[float, dict[str, Any]]:
    """Return the P(link) needed to keep a link, and the metadata entries on a promised `precision`.

    It is `at_least`, or more if the promise needs it. The promise is tested on held-out links (`held`: their P(link)
    [n], and which are right [n]); with None, nothing is promised. If no threshold passes, no link is kept.
    """
    if precision is None or held is None:
        return at_least, {}
    certified = promise(*held, precision)
    if certified is None:
        logger.warning(
            "no threshold on P(link) is certain to keep a precision of %g with these known links, so no text is "
            "linked: lower `precision`, pass more links with `train`, or use `min_probability`",
            precision,
        )
        return math.inf, {"promise": {"precision": precision, "threshold": None}}
    logger.info("%s", certified)
    return max(at_least, certified.threshold), {"promise": asdict(certified)}


def best_f1(p: Float64Array, share: float) -> dict[str, float]:
    """Return the threshold on the probabilities `p` [n] of links with the highest expected F1, and this F1.

    `share` of the n pages have a counterpart. The expected F1 of the k most probable links is twice the sum of their
    probabilities, divided by k plus the number of links that exist (Nan, Chai, Lee and Chieu 2012).
    """
    if not len(p):
        return {"threshold": 0.0, "expected": 0.0}
    ordered = np.sort(p)[::-1]
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(p) + 1) + share * len(p))
    k = int(expected.argmax())
    return {"threshold": round(float(ordered[k]), 4), "expected": round(float(expected[k]), 4)}


def fewest(precision: float, delta: float) -> int:
    """Return the smallest number of links, all of them right, with which a test at level `delta` can pass.

    A sequence of tests that began with fewer would end at once: 40 links never show a precision of .9 at level .05 / 4.
    If no number suffices, the result is `sys.maxsize`.
    """
    if precision >= 1:
        return sys.maxsize
    return math.ceil(math.log(delta) / math.log(precision)) if precision > 0 else 1


def _sizes(scores: Float64Array, start: int) -> Iterator[int]:
    """Yield how many links each threshold of a sequence keeps; links of equal score stay together."""
    step = max(1, round(STEP * len(scores)))
    for size in range(max(1, start), len(scores) + 1, step):
        yield int(np.searchsorted(-scores, -scores[size - 1], side="right"))
