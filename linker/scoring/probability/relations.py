"""Evidence on a candidate from other texts: trees over their demand for the same document, learned from known links.

Competition only takes a document away from a text; this can also add support if texts share a document. The features
come from P(link) of each text alone, not from any known link, so that known texts and texts to link have comparable
features.
"""

from dataclasses import replace

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from indexes.errors import MissingExtraError
from linker.evaluation.significance import fold_numbers
from linker.scoring.probability.competition import Lists, join, softmax
from linker.scoring.ranking.calibration import slope_of
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.training import FEWEST, grow
from linker.scoring.ranking.training import TrainingLists as TreeLists

NAMES = (
    "link", "behind", "margin", "rank", "others_best", "others_lead", "others_rank", "others_sum", "others_count",
    "first_lead", "both_lead",
)  # fmt: skip
TREES = 100  # 50 to 200 are equally good on tweets2claims
# weight of log P(link) of the text alone, which is added to the trees' score: as good as trees alone, and steadier
OWN = 0.5
FOLDS = 5
LEAST = 1e-9  # a probability is at least this before its logarithm is taken


def relations(lists: Lists) -> Float32Array:
    """Return the features NAMES of each candidate, float32 [n, c, names]; 0 where there is no candidate.

    link: log P(link) of the text alone; behind, margin, rank: relative to the text's other candidates; others_best,
    others_lead, others_rank, others_sum, others_count: relative to the other texts that have the document as a
    candidate; first_lead: the lead of the text's first candidate over the other texts that want it; both_lead: the
    lead over the mean of the text's first candidate and of the best of the other texts.
    """
    valid = lists.documents >= 0
    p = softmax(lists.logits())[:, :-1] * (1 - lists.none[:, None])
    link = np.log(np.maximum(p, LEAST))
    masked = np.where(valid, link, -np.inf)
    ordered = np.sort(np.pad(masked, [(0, 0), (0, 1)], constant_values=-np.inf), axis=1)[:, ::-1]
    best, second = ordered[:, :1], np.maximum(ordered[:, 1:2], np.log(LEAST))
    rank = np.argsort(np.argsort(-masked, axis=1, kind="stable"), axis=1, kind="stable")
    other, better, total, count = _others(lists.documents, p, valid)
    other = np.log(np.maximum(other, LEAST))
    first = np.take_along_axis(link - other, masked.argmax(axis=1)[:, None], 1)
    parts = (
        link, link - best, best - second, rank, other, link - other, better, total, count, first,
        link - (other + best) / 2,
    )  # fmt: skip
    out = np.stack(np.broadcast_arrays(*parts), axis=2)
    return np.where(valid[:, :, None], np.nan_to_num(out, neginf=0), 0).astype(np.float32)


def _others(
    documents: Int64Array, p: Float64Array, valid: BoolArray
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return, for the other texts that have the document, the best `p`, how many are better, their sum and number."""
    flat = np.flatnonzero(valid)
    document, value = documents.ravel()[flat], p.ravel()[flat]
    order = np.lexsort((-value, document))
    document, value = document[order], value[order]
    start = np.flatnonzero(np.append(True, document[1:] != document[:-1])[: len(document)])
    size = np.diff(np.append(start, len(document)))
    group = np.repeat(np.arange(len(start)), size)
    better = np.arange(len(document)) - start[group]
    next_best = np.append(value, 0)[np.where(size > 1, start + 1, len(value))]
    best = np.where(better == 0, next_best[group], value[start][group])
    total = np.add.reduceat(value, start)[group] - value if len(start) else value
    out = []
    for values in (best, better, total, size[group] - 1):
        full = np.zeros(documents.size)
        full[flat[order]] = values
        out.append(full.reshape(documents.shape))
    return out[0], out[1], out[2], out[3]


def relate(
    first: Lists, absent: Lists, relevant: BoolArray, lists: Lists, seed: int = 0
) -> tuple[Lists, Lists, Lists] | None:
    """Return the lists of known texts, with and without their documents, and of texts to link, with scores that
    account for all other texts' demand.

    `relevant` (bool [n, c]) marks the links among the candidates of the known texts, `first`; `absent` are the same
    lists without them. The scores of known texts come from trees that did not see the text's links. For the scores
    without their documents, one fold at a time lacks them, while the other texts keep theirs. Returns None if fewer
    than FEWEST texts are linked, or without the extra `rank`.
    """
    if int(relevant.any(axis=1).sum()) < FEWEST:
        return None
    both, count = join(first, lists), len(first)
    x, valid = relations(both), both.documents >= 0
    relevant = np.pad(relevant, [(0, 0), (0, valid.shape[1] - relevant.shape[1])])
    sizes = valid[:count].sum(axis=1)
    taught = TreeLists(x[:count][valid[:count]], sizes, relevant[valid[:count]])
    # The texts to link are scored by trees that saw all known links.
    fold = np.append(fold_numbers(count, FOLDS, seed), np.full(len(lists), FOLDS))
    scores = np.full(valid.shape, -np.inf)
    without = np.full((count, valid.shape[1]), -np.inf)
    try:
        for number in range(FOLDS + 1):
            mask = fold == number
            forest = Forest.read(compact(grow(taught.part(~mask[:count]), NAMES, TREES, seed)))
            scores[mask] = _scores(forest, x[mask], valid[mask])
            if number < FOLDS:
                alone = join(absent.at(mask[:count]), both.at(~mask))
                some = slice(int(mask.sum()))
                without[mask[:count]] = _scores(forest, relations(alone)[some], alone.documents[some] >= 0)
    except MissingExtraError:
        return None
    slope = slope_of(scores[:count], relevant)
    parts = (first, scores[:count]), (absent, without), (lists, scores[count:])
    known, hidden, rest = (replace(p, scores=slope * of[:, : p.documents.shape[1]]) for p, of in parts)
    return known, hidden, rest


def _scores(forest: Forest, x: Float32Array, valid: BoolArray) -> Float64Array:
    """Return the scores [n, c] of candidates with features `x` [n, c, names], −inf where there is none."""
    scores = np.full(valid.shape, -np.inf)
    scores[valid] = forest.scores(x[valid]) + OWN * x[valid][:, NAMES.index("link")]
    return scores
