"""Fit a calibration to an index's judged queries: some queries fit it, the others are held out for its promises."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.hybrid import Answer, Embed
from linker.base.errors import InputError
from linker.corpora import Query
from linker.scoring.probability import logistic
from linker.scoring.probability.calibration import Calibration, Source
from linker.scoring.probability.features import Describer
from linker.scoring.probability.promise import FEWEST as FEWEST_HELD

Qrels = Mapping[str, Mapping[str, float]]
Search = Callable[[Sequence[str], int], Answer]
HITS = 10  # hits per query from which the model learns
FEWEST = 20  # a fit needs at least this many relevant hits, and as many irrelevant ones
MOST_SEEN = 1000  # number of first hits kept for comparison with future ones
HELD_SHARE = 0.5
BINS = 10
DRAWS = 200


@dataclass(frozen=True)
class Hitlist:
    """Documents of queries: rows (int64 [n, c], −1: none), features [n, c, f], which are relevant, which are judged."""

    rows: Int64Array
    features: Float64Array
    relevant: BoolArray
    judged: BoolArray

    def part(self, chosen: BoolArray) -> Hitlist:
        """Return the queries marked in `chosen` (bool [n])."""
        rows, features = self.rows[chosen], self.features[chosen]
        return Hitlist(rows, features, self.relevant[chosen], self.judged[chosen])


def hitlist(
    collection: AnyCollection,
    describer: Describer,
    search: Search,
    queries: Sequence[Query],
    qrels: Qrels,
    *,
    complete: bool = True,
) -> Hitlist:
    """Return the best HITS hits of queries, with features and the judgements in `qrels`.

    If the judgements are not `complete`, documents that they do not name count as unjudged, and judged documents that
    are not hits are added after the hits. Raises BackendUnavailableError if a retriever cannot answer.
    """
    answer = search([q.text for q in queries], HITS)
    ranking = collection.ranking()
    lines: list[list[str]] = []
    for query, hits in zip(queries, answer.hits, strict=True):
        known = () if complete else collection.present(list(qrels[query.id]))
        judged = [id_ for id_ in qrels[query.id] if id_ in known]
        lines.append(list(dict.fromkeys([*hits.ids, *judged])))
    rows = np.full((len(queries), max([1, *map(len, lines)])), -1, dtype=np.int64)
    relevant, judged_rows = np.zeros(rows.shape, dtype=bool), np.zeros(rows.shape, dtype=bool)
    for number, (query, ids) in enumerate(zip(queries, lines, strict=True)):
        graded = qrels[query.id]
        rows[number, : len(ids)] = ranking.rows.locate(ids)
        relevant[number, : len(ids)] = [graded.get(id_, 0) > 0 for id_ in ids]
        judged_rows[number, : len(ids)] = [complete or id_ in graded for id_ in ids]
    features = describer.describe([q.text for q in queries], rows, None, ranking)
    return Hitlist(rows, features, relevant, judged_rows)


def calibrate(
    collection: AnyCollection,
    embed: Embed | None,
    search: Search,
    queries: Sequence[Query],
    qrels: Qrels,
    *,
    complete: bool = True,
    held_share: float = HELD_SHARE,
    seed: int = 0,
) -> Calibration:
    """Fit a calibration on the queries judged in `qrels`, including those without a relevant document.

    A share `held_share` of the queries, drawn with `seed`, is held out: measures and promises come from queries
    unseen in fitting. With fewer than 2 × FEWEST_HELD queries, none is held out. `embed` None: without vectors. For
    `complete`, see `hitlist`. Raises InputError if too few hits are relevant, or too few are not, and
    BackendUnavailableError.
    """
    judged = [q for q in queries if q.id in qrels]
    describer = Describer(collection, embed)
    hits = hitlist(collection, describer, search, judged, qrels, complete=complete) if judged else None
    if hits is None:
        raise InputError("no query is judged: the judgements must name the ids of the queries")
    shuffled = np.random.default_rng(seed).permutation(len(judged))
    count = round(held_share * len(judged)) if len(judged) >= 2 * FEWEST_HELD else 0
    held = np.isin(np.arange(len(judged)), shuffled[:count])
    source = Source.of(collection.manifest, encoder=embed is not None)
    return fit_held_out(hits.part(~held), hits.part(held), describer.names, source, seed)


def fit_held_out(
    learned: Hitlist, held: Hitlist, names: Sequence[str], source: Source, seed: int = 0
) -> Calibration:
    """Return the calibration learned from some queries' hits, with the first hits of the held-out queries."""
    used = learned.judged & (learned.rows >= 0)
    x, relevant = learned.features[used], learned.relevant[used]
    positive, negative = int(relevant.sum()), int((~relevant).sum())
    if min(positive, negative) < FEWEST:
        raise InputError(
            f"{positive} judged hits are relevant and {negative} are not, but probabilities need {FEWEST} of each: "
            "judge more"
        )
    centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    weights = logistic.fit((x - centre) / scale, relevant)
    first = held.judged[:, 0] & (held.rows[:, 0] >= 0)
    sample = np.concatenate([part.features[:, 0][part.rows[:, 0] >= 0] for part in (learned, held)])
    if len(sample) > MOST_SEEN:
        sample = sample[np.random.default_rng(seed).choice(len(sample), MOST_SEEN, replace=False)]
    calibration = Calibration(
        tuple(names), weights, centre, scale, np.zeros(0), np.zeros(0, dtype=bool),
        {name: np.sort(sample[:, i]) for i, name in enumerate(names)}, source,
    )  # fmt: skip
    probabilities, right = calibration.probabilities(held.features[:, 0][first]), held.relevant[:, 0][first]
    about: dict[str, float] = {
        "queries": len(learned.rows) + len(held.rows),
        "fitted": len(x),
        "held": len(right),
        "seed": seed,
    }
    if len(right):
        about |= summary(probabilities, right)
        about["auc_bm25"] = auc(held.features[:, 0][first][:, list(names).index("bm25")], right)
    return dataclasses.replace(calibration, held=probabilities, right=right, about=_finite(about))


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if np.isfinite(value)}


def calibration_error(probabilities: Float64Array, right: BoolArray, bins: int = BINS) -> float:
    """Return the expected calibration error: mean of |mean probability − share right| over bins of equal mass."""
    if not len(right):
        return float("nan")
    parts = np.array_split(np.argsort(probabilities, kind="stable"), bins)
    gaps = [abs(float(probabilities[part].sum() - right[part].sum())) for part in parts]
    return sum(gaps) / len(right)


def noise_floor(probabilities: Float64Array, seed: int = 0) -> float:
    """Return the mean calibration error that perfect probabilities would have by chance alone."""
    random = np.random.default_rng(seed)
    drawn = [random.random(len(probabilities)) < probabilities for _ in range(DRAWS)]
    return float(np.mean([calibration_error(probabilities, right) for right in drawn]))


def brier(probabilities: Float64Array, right: BoolArray) -> float:
    """Return the mean squared distance between the probabilities and the outcomes."""
    return float(np.mean((probabilities - right) ** 2))


def brier_gain(probabilities: Float64Array, right: BoolArray) -> float:
    """Return the relative reduction of the Brier score compared with the base rate's; 0 if that is 0."""
    base = float(right.mean() * (1 - right.mean()))
    return 1 - brier(probabilities, right) / base if base else 0.0


def auc(scores: Float64Array, right: BoolArray) -> float:
    """Return the area under the ROC curve, ties counting half; NaN if all links or none are right."""
    positive, negative = int(right.sum()), int((~right).sum())
    if not positive or not negative:
        return float("nan")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[right].sum() - positive * (positive + 1) / 2) / (positive * negative))


def summary(probabilities: Float64Array, right: BoolArray) -> dict[str, float]:
    """Return the measures of held-out links by name, as JSON values."""
    return {
        "base_rate": float(right.mean()),
        "calibration_error": calibration_error(probabilities, right),
        "noise_floor": noise_floor(probabilities),
        "brier": brier(probabilities, right),
        "brier_gain": brier_gain(probabilities, right),
        "auc": auc(probabilities, right),
    }
