"""Searching with a learned ranker: it orders its candidates; the first stage's hits follow if more are needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xxhash

from indexes.anywhere import AnyCollection
from indexes.hybrid import Answer, Embed, Mode
from indexes.interface import Filter, Hits
from linker.base.errors import InputError
from linker.scoring.ranking.candidates import Gatherer, Pool
from linker.scoring.ranking.ranker import BATCH, RankedCandidates, Ranker, ScoreParts, contributions

# minimum number of texts that count as one batch: a server may have put fewer together from unrelated requests
FEWEST = 50


class RankedSearch:
    """A ranker over one opened index."""

    def __init__(self, collection: AnyCollection, ranker: Ranker, embed: Embed | None) -> None:
        """`embed` turns texts into vectors, float32 [n, dim]. Raises InputError if the encoder does not match."""
        record = collection.manifest.encoder
        if ranker.encoder and (record is None or record.fingerprint != ranker.encoder):
            raise InputError(
                f"the ranker was trained with another encoder (fingerprint {ranker.encoder[:12]}) than this index has "
                f"({record.fingerprint[:12] if record else 'none'}): train a ranker for this index"
            )
        self.ranker, self._collection = ranker, collection
        self._gatherer = Gatherer(collection, ranker.pool, embed if ranker.encoder else None)

    def search(self, texts: Sequence[str], k: int, where: Filter | None = None) -> Answer:
        """Return the top k for each text, scored by P(link); FEWEST texts or more are calibrated together.

        Raises BackendUnavailableError.
        """
        gatherer, ranker = self._gatherer.again(), self.ranker.for_size_of(self._collection)
        parts = [
            ranker.rank(gatherer.gather(texts[start : start + BATCH], where))
            for start in range(0, len(texts), BATCH)
        ]
        separate = np.concatenate([np.empty(0), *(part.none for part in parts)])
        none = ranker.calibration.together(separate) if len(texts) >= FEWEST else separate
        times = np.divide(1 - none, 1 - separate, out=np.ones(len(none)), where=separate < 1)
        hits: list[Hits] = []
        for part in parts:
            part_rows = slice(len(hits), len(hits) + len(part.rows))
            links = part.links[:, :k] * times[part_rows, None]
            found = gatherer.ranking.rows.hits(part.rows[:, :k], links.astype(np.float32))
            hits += [replace(h, no_match=p) for h, p in zip(found, none[part_rows].tolist(), strict=True)]
        mode: Mode = "hybrid" if self.ranker.encoder else "bm25"
        return Answer(hits, mode, reranked=True, ranker=self.ranker.fingerprint)

    def explain(self, text: str, top: int = 8) -> tuple[Pool, RankedCandidates, list[tuple[str, ScoreParts]]]:
        """Return a text's candidates, in the pool's and in the ranker's order, and the contributions to each score.

        The contributions are in the ranker's order, each with its document's id and the `top` largest features.
        """
        gatherer = self._gatherer.again()
        pool = gatherer.gather([text])
        ranked = self.ranker.for_size_of(self._collection).rank(pool)
        moved, ids = contributions(self.ranker, pool, top), gatherer.ranking.rows.ids
        place = {row: number for number, row in enumerate(pool.rows[0].tolist())}
        return pool, ranked, [(ids[row], moved[place[row]]) for row in ranked.rows[0].tolist() if row >= 0]


def fill_up(answer: Answer, first: Answer, k: int) -> Answer:
    """Return an answer's hits, then the first stage's other hits in order, with scores −1, −2, …: k in total."""
    hits = []
    for ranked, before in zip(answer.hits, first.hits, strict=True):
        seen = set(ranked.ids)
        rest = [id_ for id_ in before.ids if id_ not in seen][: max(0, k - len(ranked))]
        below = -np.arange(1, len(rest) + 1, dtype=np.float32)
        scores = np.concatenate([ranked.scores, below])
        hits.append(replace(ranked, ids=(*ranked.ids, *rest), scores=scores))
    return replace(answer, hits=hits, degraded=first.degraded)


def folder_name(folder: Path) -> str:
    """Return 16 hexadecimal digits that identify the content of a ranker's folder."""
    digest = xxhash.xxh3_128()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
