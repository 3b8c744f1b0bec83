"""The least probability of a link that is kept: as given, and as a promised precision requires."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.logs import logger
from linker.crosslingual.options import Options
from linker.scoring.probability.promise import promise
from linker.scoring.ranking.fitting import Fitted


def least_probability(fitted: Fitted, options: Options) -> tuple[float, dict[str, Any]]:
    """Return the threshold on P(link) by `options`, a record of it, of the share linked and of the best F1.

    A promised precision is tested on links that were held out, mixed with lists without their targets so that the
    share of linked pages is that of the pages to link (Learn then Test). Where no threshold passes, none is kept.
    """
    source = "estimated" if options.expected_linked is None else "expected"
    record: dict[str, Any] = {
        "min_probability": options.min_probability,
        "linked_share": {source: round(fitted.share, 4)},
        "best_f1": best_f1(fitted.probabilities[:, :-1].max(axis=1, initial=0), fitted.share),
    }
    if options.precision is None or fitted.held is None:
        return options.min_probability, record
    certified = promise(*fitted.held.mixture(fitted.share), options.precision)
    if certified is None:
        logger.warning(
            "no threshold on P(link) is certain to keep a precision of %g with these known links, so no page is "
            "linked: lower `precision`, pass more links with `train`, or use `min_probability`",
            options.precision,
        )
        return math.inf, record | {"promise": {"precision": options.precision, "threshold": None}}
    logger.info("%s", certified)
    return max(options.min_probability, certified.threshold), record | {"promise": asdict(certified)}


def best_f1(p: Float64Array, share: float) -> dict[str, float]:
    """Return the threshold on the probabilities `p` [n] of links that has the highest expected F1, and this F1.

    `share` of the n pages have a counterpart. The expected F1 of the k most probable links is twice the sum of their
    probabilities, divided by k plus the number of links that exist (Nan, Chai, Lee and Chieu 2012).
    """
    if not len(p):
        return {"threshold": 0.0, "expected": 0.0}
    ordered = np.sort(p)[::-1]
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(p) + 1) + share * len(p))
    k = int(expected.argmax())
    return {"threshold": round(float(ordered[k]), 4), "expected": round(float(expected[k]), 4)}
