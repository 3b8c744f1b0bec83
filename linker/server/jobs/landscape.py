"""A map of an index: its documents as points in the plane, similar ones near each other (t-SNE)."""

import contextlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE

from indexes.errors import Reason
from indexes.interface import Matrix, RowArray
from linker.base.errors import InputError
from linker.base.progress import Progress
from linker.engine.engine import Engine
from linker.server.jobs.points import EDGE, LEAST, MOST, Points, save

COMPONENTS = 50  # number of principal components from which t-SNE starts
ITERATIONS = 500
PERPLEXITY = 30.0
READING, PLACING = "reading documents", "placing documents"


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Compute the map of the index `spec["index"]` and write it to the file `spec["out"]`; see `points`."""
    seed = int(spec.get("seed", 0))
    engine = Engine(Path(spec["index"]))
    rows = sample(engine, int(spec.get("most", MOST)), seed)
    if len(rows) < LEAST:
        text = f"{engine.directory} has {len(rows)} documents: a map needs at least {LEAST}"
        raise InputError(Reason(text, "small-map", count=len(rows), least=LEAST))
    tell(READING, 0, len(rows))
    points = layout(features(engine, rows), seed, tell)
    ids = [engine.collection.rows.ids[row] for row in rows]
    save(Path(spec["out"]), ids, points, engine.collection.manifest.generation)
    return {"documents": len(ids)}


def sample(engine: Engine, most: int, seed: int) -> RowArray:
    """Return the rows of all documents, or `most` of them drawn at random, ascending."""
    live = engine.collection.rows.mask()
    rows = np.arange(len(engine.collection.rows.ids)) if live is None else np.flatnonzero(live)
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def features(engine: Engine, rows: RowArray) -> Matrix:
    """Return at most `COMPONENTS` features of each row, float32 [n, d].

    They are the principal components of the index's vectors or, if it has none, of TF-IDF vectors (latent semantic
    analysis; Deerwester et al., 1990).
    """
    documents, encoder = engine.collection.documents, engine.collection.manifest.encoder
    if encoder is not None:
        (vectors,) = documents.vectors(encoder.dim)
        components = min(COMPONENTS, len(rows), encoder.dim)
        return np.asarray(PCA(components, random_state=0).fit_transform(vectors[rows]), np.float32)
    texts = [documents[int(row)].full_text for row in rows]
    few = InputError(
        Reason("the documents have at most one word in common: no map can be drawn of them", "no-map")
    )
    try:
        terms = TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.5, dtype=np.float32).fit_transform(
            texts
        )
    except ValueError as e:  # no two texts share a word
        raise few from e
    components = min(COMPONENTS, len(rows) - 1, terms.shape[1] - 1)
    if components < 1:
        raise few
    return np.asarray(TruncatedSVD(components, random_state=0).fit_transform(terms), np.float32)


def layout(rows: Matrix, seed: int, tell: Progress) -> Points:
    """Return the t-SNE coordinates of `rows` (van der Maaten & Hinton, 2008; Barnes-Hut), scaled to 0 … `EDGE`."""
    tsne = TSNE(
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        init=np.ascontiguousarray(_start(rows)),
        max_iter=ITERATIONS,
        random_state=seed,
        n_jobs=1,
        verbose=2,  # scikit-learn reports its progress in no other way
    )
    with contextlib.redirect_stdout(_Iterations(tell)):
        places = tsne.fit_transform(rows)
    low, high = places.min(axis=0), places.max(axis=0)
    span = max(float((high - low).max()), 1e-9)  # the same scale for both axes
    scaled: Points = np.round((places - low) / span * EDGE).astype(np.uint16)
    return scaled


def _start(rows: Matrix) -> Matrix:
    """Return the first two components [n, 2], scaled down to a standard deviation of 1e-4, as t-SNE expects."""
    two = np.zeros((len(rows), 2), np.float32)
    two[:, : min(2, rows.shape[1])] = rows[:, :2]
    return two / max(float(two[:, 0].std()), 1e-9) * 1e-4


class _Iterations(io.TextIOBase):
    """Reads scikit-learn's output and reports the iterations in it."""

    def __init__(self, tell: Progress) -> None:
        self._tell = tell

    def write(self, text: str) -> int:
        """Report the iteration that a line of scikit-learn names."""
        if found := re.search(r"Iteration (\d+)", text):
            self._tell(PLACING, int(found[1]), ITERATIONS)
        return len(text)
