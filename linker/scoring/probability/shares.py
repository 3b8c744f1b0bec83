"""Estimates the share of positive cases, and adapts probabilities to it.

Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities" (2002): the
log odds of a probability are the evidence of the case plus the log odds of the assumed share. The evidence stays the
same if the share differs, and the share is estimated by EM from the evidence of many cases.
"""

from __future__ import annotations

import numpy as np

from indexes.dtypes import Float64Array

EDGE = 1e-9  # probabilities are clipped to at least this distance from 0 and 1
EXPECTED = 2.0  # number of pseudo-cases with the expected share that are added to the cases
ROUNDS, ENOUGH = 500, 1e-6


def estimate_share(evidence: Float64Array, expected: float = 0.5) -> float:
    """Return the most probable share of positive cases, by EM from their log odds [n] at a share of ½."""
    from scipy.special import expit, logit

    share = expected
    for _ in range(ROUNDS):
        positive = float(expit(evidence + logit(share)).sum())
        before, share = share, (positive + EXPECTED * expected) / (len(evidence) + EXPECTED)
        if abs(share - before) < ENOUGH:
            break
    return share


def adapted(probabilities: Float64Array, share: float, known: float | None = None) -> Float64Array:
    """Return `probabilities` [n], which assume that a `share` of the cases is positive, adapted to these cases' share.

    That share is `known` or, by default, estimated.
    """
    from scipy.special import expit, logit

    evidence = logit(np.clip(probabilities, EDGE, 1 - EDGE)) - logit(share)
    here = estimate_share(evidence, share) if known is None else np.clip(known, EDGE, 1 - EDGE)
    return np.asarray(expit(evidence + logit(here)))
