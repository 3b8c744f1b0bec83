"""Estimates the share of positive cases, and adapts probabilities to it.

Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities" (2002): the
log odds of a probability are the evidence of the case plus the log odds of the assumed share. The evidence stays the
same if the share differs.

They estimate the share by EM, which fails with few cases. Here, each share counts by its probability given the
evidence of all cases, from a beta prior that weighs as much as one case: Jeffreys' prior, Beta(½, ½), if the expected
share is ½. Thus a single case keeps the expected share, and each further case adds to what is known. The likelihood is
a polynomial in the share, for which Gauss-Jacobi quadrature is exact if the cases are fewer than twice its nodes.
"""

import functools

import numpy as np

from indexes.dtypes import Float64Array

EDGE = 1e-9  # probabilities are clipped to at least this distance from 0 and 1
NODES = 256  # shares at which the posterior is evaluated
NEGLIGIBLE = 1e-12  # shares with a smaller posterior probability are left out


@functools.lru_cache(maxsize=64)
def _prior(expected: float) -> tuple[Float64Array, Float64Array]:
    """Return shares [NODES] and their probabilities [NODES] under Beta(expected, 1 − expected)."""
    from scipy.special import roots_jacobi

    with np.errstate(invalid="ignore"):  # scipy also computes a branch that it does not use
        nodes, weights = roots_jacobi(NODES, -expected, expected - 1)
    return np.clip((1 + nodes) / 2, EDGE, 1 - EDGE), weights / weights.sum()


def _posterior(evidence: Float64Array, expected: float) -> tuple[Float64Array, Float64Array]:
    """Return shares and their probabilities given the log odds [n] of cases at a share of ½."""
    shares, prior = _prior(min(max(expected, EDGE), 1 - EDGE))
    logs = [np.logaddexp(evidence + np.log(p), np.log1p(-p)).sum() for p in shares.tolist()]
    with np.errstate(divide="ignore"):
        weights = np.log(prior) + np.array(logs)
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    some = weights >= NEGLIGIBLE
    return shares[some], weights[some] / weights[some].sum()


def estimate_share(evidence: Float64Array, expected: float = 0.5) -> float:
    """Return the expected share of positive cases, given their log odds [n] at a share of ½."""
    shares, weights = _posterior(evidence, expected)
    return float(shares @ weights)


def adapt(probabilities: Float64Array, share: float, known: float | None = None) -> Float64Array:
    """Return `probabilities` [n], which assume that a `share` of the cases is positive, adapted to these cases' share.

    Their share is `known`, or else each share is weighted by its posterior probability.
    """
    from scipy.special import expit, logit

    evidence = evidence_of(probabilities, share)
    if known is not None:
        return np.asarray(expit(evidence + logit(np.clip(known, EDGE, 1 - EDGE))))
    out = np.zeros(len(evidence))
    for p, weight in zip(*_posterior(evidence, share), strict=True):
        out += weight * expit(evidence + logit(p))
    return out


def evidence_of(probabilities: Float64Array, share: float) -> Float64Array:
    """Return the log odds [n] of cases at a share of ½, given their probabilities [n] at another share."""
    from scipy.special import logit

    return np.asarray(logit(np.clip(probabilities, EDGE, 1 - EDGE)) - logit(share))
