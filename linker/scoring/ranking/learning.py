"""Learn a ranker from an index and judged queries."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import BoolArray
from indexes.hybrid import Embed, HybridIndex
from indexes.interface import RowArray
from linker.corpora import Query
from linker.scoring.ranking import pooled
from linker.scoring.ranking.candidates import Gatherer, Pool, PoolSettings
from linker.scoring.ranking.ranker import BATCH, Ranker
from linker.scoring.ranking.training import FEWEST, Training, after_and_before, train

Qrels = Mapping[str, Mapping[str, float]]


def learn(
    collection: AnyCollection,
    embed: Embed | None,
    queries: Sequence[Query],
    qrels: Qrels,
    settings: PoolSettings | None = None,
    seed: int = 0,
    advance: Callable[[str], object] = lambda step: None,
) -> Training:
    """Return a ranker trained on the queries judged in `qrels`; `embed` None: without the index's encoder.

    Queries without a relevant document teach the ranker when there is no link. If fewer than FEWEST queries have a
    relevant candidate and the index has no encoder, linker's default ranker is measured and returned instead.

    Raises the same errors as `training.train`.
    """
    settings = settings or PoolSettings()
    judged = [q for q in queries if q.id in qrels]
    gatherer = Gatherer(collection, settings, embed)
    pool = gather_batches(gatherer, [q.text for q in judged], advance)
    relevant = relevant_rows(gatherer.ranking, judged, qrels, pool.rows)
    record = collection.manifest.encoder
    found = int(relevant.any(axis=1).sum())
    if 0 < found < FEWEST and record is None and not settings.date_field:
        advance(
            f"{found} queries are too few to learn from ({FEWEST}): the ranker that comes with linker is used"
        )
        return pooled.measure(pool, relevant, found)
    about = {"language": collection.manifest.analysis.language, "documents": len(collection)}
    return train(
        pool,
        relevant,
        settings,
        seed=seed,
        encoder=record.fingerprint if record and embed else "",
        about=about,
        advance=advance,
    )


def gather_batches(
    gatherer: Gatherer, texts: Sequence[str], advance: Callable[[str], object] = lambda step: None
) -> Pool:
    """Return the candidates of many texts."""
    pools = []
    for start in range(0, len(texts), BATCH):
        advance(f"candidates of query {start + 1} of {len(texts)}")
        pools.append(gatherer.gather(texts[start : start + BATCH]))
    most = max([1, *(pool.rows.shape[1] for pool in pools)])
    rows = np.full((len(texts), most), -1, dtype=np.int64)
    out = np.zeros((len(texts), most, len(gatherer.names)), dtype=np.float32)
    for number, pool in enumerate(pools):
        here = slice(number * BATCH, number * BATCH + len(pool.rows))
        rows[here, : pool.rows.shape[1]] = pool.rows
        out[here, : pool.rows.shape[1]] = pool.features
    return Pool(rows, out, gatherer.names)


def relevant_rows(ranking: HybridIndex, queries: Sequence[Query], qrels: Qrels, rows: RowArray) -> BoolArray:
    """Return which candidates `rows` [n, c] of the queries, in `ranking`, are judged relevant, bool [n, c]."""
    ids = ranking.rows.ids
    judged = [qrels.get(query.id, {}) for query in queries]
    return np.array(
        [
            [r >= 0 and of.get(ids[r], 0) > 0 for r in line]
            for of, line in zip(judged, rows.tolist(), strict=True)
        ],
        dtype=bool,
    ).reshape(rows.shape)


def measure(
    collection: AnyCollection, ranker: Ranker, embed: Embed | None, queries: Sequence[Query], qrels: Qrels
) -> dict[str, float]:
    """Return MRR and S@1 of a ranker, and of the first retriever, on queries that the ranker has not seen."""
    judged = [q for q in queries if any(r > 0 for r in qrels.get(q.id, {}).values())]
    gatherer = Gatherer(collection, ranker.pool, embed)
    pool = gather_batches(gatherer, [q.text for q in judged])
    relevant = relevant_rows(gatherer.ranking, judged, qrels, pool.rows)
    figures = after_and_before(ranker.scores(pool), relevant, pool.valid)
    names = ("queries", "mrr", "success", "mrr_before", "success_before")
    return dict(zip(names, (float(len(judged)), *figures), strict=True))
