"""The default ranker of linker: for an index that has no encoder and too few links, if any, of its own.

It was trained on several collections, and blends its trees with BM25, because trees alone lose to BM25 on a different
kind of collection.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from indexes.dtypes import AnyArray, BoolArray, Float64Array
from linker.base.errors import InputError
from linker.base.files import read_regular
from linker.scoring.ranking import calibration, folder
from linker.scoring.ranking.candidates import Pool, PoolSettings
from linker.scoring.ranking.forest import MOST_BYTES, Forest, compact
from linker.scoring.ranking.groups import names_of
from linker.scoring.ranking.ranker import Ranker, blend_with_bm25
from linker.scoring.ranking.training import Training, TrainingLists, after_and_before, grow, lists_of

NAME = "pooled"  # the name by which `--rerank` chooses it
FOLDER = Path(__file__).with_name("pooled")
TREES = 100  # more trees fit the training collections better, and others worse
BLEND = 1.0
SHARE = 0.5  # assumed share of queries with a match in a collection about which nothing is known

# P(none) as it was when P(same story) of `scoring.groups` was learned, since its evidence depends on it.
FOR_GROUPS = calibration.ListCalibration(
    ("best", "lead", "coverage", "sentence", "likelihood", "missing_idf", "run_weight", "query_idf"),
    0.7894111644099112,
    (
        -1.1845214215695812,
        0.41284514913217435,
        -1.2886408923967634,
        -0.5342855159028649,
        -0.2071094043256343,
        -0.9491542398944177,
        0.1859907749919689,
        -0.49830190891260295,
        -2.5108809344460217,
    ),
    (
        5.600338842629213,
        2.6308320270272634,
        0.6523482722047084,
        0.488184552795346,
        2.2014892568176716,
        4.360006889319661,
        0.3347055264765548,
        52.18958908767977,
    ),
    (
        1.576578219781729,
        2.2925809985878693,
        0.32149981030922553,
        0.2753589219556755,
        1.349950937884694,
        3.9420673088847,
        0.22286966294078855,
        62.95683165575019,
    ),
    0.9265734265734266,
)


@functools.cache
def load() -> Ranker:
    """Return linker's default ranker, the same one for all callers."""
    return folder.load(FOLDER)


def measure(pool: Pool, relevant: BoolArray, found: int) -> Training:
    """Return linker's default ranker like a newly trained one, with its figures on the queries' candidates."""
    ranker = load()
    figures = after_and_before(ranker.scores(pool), relevant, pool.valid)
    text = read_regular(FOLDER / folder.TREES, MOST_BYTES).decode()
    return Training(ranker, text, len(relevant), found, *figures)


def learn(
    parts: Sequence[tuple[Pool, BoolArray]],
    seed: int = 0,
    about: Mapping[str, object] | None = None,
    text: str | None = None,
) -> tuple[Ranker, str]:
    """Return a ranker learned from several collections, and the text of its trees, which are those of `text` if given.

    Each part holds a collection's pool and which of its candidates are relevant (bool [n, c]). The probabilities are
    fitted on each collection's scores from trees of the others, so they hold for unseen collections.

    Raises InputError for a single collection.
    """
    if len(parts) < 2:
        raise InputError("a pooled ranker learns from two collections or more")
    names = parts[0][0].names
    lists = [lists_of(pool, relevant) for pool, relevant in parts]
    text = text or compact(grow(_join(lists), names_of(names), TREES, seed))
    columns = []
    for number, (pool, relevant) in enumerate(parts):
        others = _join([part for place, part in enumerate(lists) if place != number])
        forest = Forest.read(compact(grow(others, names_of(names), TREES, seed)))
        others_only = pool.without(relevant)
        scores = _blend(forest, pool, lists[number])
        hidden = _blend(forest, others_only, lists_of(others_only, relevant))
        columns.append((scores, hidden, pool.valid, relevant, pool.features))
    scores, hidden, valid, relevant, features = (_stack(column) for column in zip(*columns, strict=True))
    fitted = calibration.fit(scores, hidden, valid, relevant, features, names, SHARE)
    ranker = Ranker(PoolSettings(), names, Forest.read(text), fitted, blend=BLEND, about=dict(about or {}))
    return ranker, text


def _blend(forest: Forest, pool: Pool, lists: TrainingLists) -> Float64Array:
    """Return the blended scores [n, c] of a pool's candidates, from its lists; 0 if there is none."""
    scores = np.full(pool.rows.shape, -np.inf)
    scores[pool.valid] = forest.scores(lists.x)
    return np.where(pool.valid, blend_with_bm25(scores, pool, BLEND), 0)


def _join(lists: Sequence[TrainingLists]) -> TrainingLists:
    return TrainingLists(
        *(
            np.concatenate([getattr(part, f.name) for part in lists])
            for f in dataclasses.fields(TrainingLists)
        )
    )


def _stack(parts: Sequence[AnyArray]) -> AnyArray:
    """Return arrays [n, c, …] as one, padded with 0 to the longest lists."""
    most = max(part.shape[1] for part in parts)
    padded = [np.pad(p, [(0, 0), (0, most - p.shape[1]), *[(0, 0)] * (p.ndim - 2)]) for p in parts]
    return np.concatenate(padded)
