"""Other ways to cluster a corpus, each with a grid of settings: linkage, HDBSCAN, BERTopic, a single pass, a stream."""

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import kept
from benchmarks.support.group_data import Grouped
from indexes.dtypes import Float32Array, Int64Array
from linker.encoders.loading import load_encoder
from linker.scoring.ranking.candidates import day_of

Groupings = Iterator[tuple[Any, Int64Array]]
DISTANCES = (0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
SMALLEST = (2, 5, 20)  # minimum cluster sizes of HDBSCAN
TOPICS = (10, 5, 2)  # minimum topic sizes of BERTopic, its default first
DIMENSIONS = 100  # singular vectors of TF-IDF, for HDBSCAN
# Characters used as the title; standard deviation in days of Miranda et al.'s Gaussian.
OPENING, NEAR = 200, 3.0
SIMILARITIES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
DECAYS = (float("inf"), 90.0, 14.0)  # days until a cluster's weight is 1/e


def vectors_of(corpus: Grouped, path: Path) -> Float32Array:
    """Return MiniLM's vectors of the documents, float32 [n, 384], cached in a file."""
    texts = [d.full_text for d in corpus.documents]
    return np.asarray(kept(path, lambda: load_encoder("minilm").encode(texts)))


def tfidf(corpus: Grouped) -> Any:
    """Return the documents' TF-IDF, CSR [n, v], with unit rows."""
    return _weights([d.full_text for d in corpus.documents])


def _weights(texts: list[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2).fit_transform(texts)


def _linkage(similarity: Any) -> Groupings:
    from scipy.cluster.hierarchy import fcluster, linkage

    distance = np.maximum(1 - np.asarray(similarity, np.float32), 0)
    tree = linkage(distance[np.triu_indices(len(distance), 1)], "average")
    for at in DISTANCES:
        yield at, fcluster(tree, at, "distance").astype(np.int64)


def _hdbscan(vectors: Any) -> Groupings:
    from sklearn.cluster import HDBSCAN

    for smallest in SMALLEST:
        for how in ("eom", "leaf"):
            found = HDBSCAN(
                min_cluster_size=smallest, min_samples=1, cluster_selection_method=how, copy=True
            ).fit_predict(vectors)
            yield f"{smallest}, {how}", _without_noise(found)


def _without_noise(found: Any) -> Int64Array:
    """Return labels in which every document of noise (−1) is a group of its own."""
    return np.where(found < 0, len(found) + np.arange(len(found)), found).astype(np.int64)


def _reduced(corpus: Grouped) -> Any:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    return normalize(TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(tfidf(corpus)))


def single_pass(corpus: Grouped) -> Groupings:
    """Yield the groupings from one pass in date order: a document joins the cluster with the nearest mean.

    The similarity decays with the days since the cluster's last document (Yang, Pierce and Carbonell, 1998).
    """
    x = tfidf(corpus)
    days = np.array([day_of(d.full_text) for d in corpus.documents])
    order = np.argsort(np.nan_to_num(days, nan=0.0), kind="stable")
    for decay in DECAYS if np.isfinite(days).mean() > 0.5 else DECAYS[:1]:
        for least in SIMILARITIES:
            yield f"{least}, {decay:g} days", _passed(x, np.nan_to_num(days, nan=0.0), order, least, decay)


def _passed(x: Any, days: Any, order: Any, least: float, decay: float) -> Int64Array:
    clusters, labels = _Clusters([x], days), np.empty(len(days), np.int64)
    for i in order.tolist():
        near = clusters.near(i)[:, 0] * np.exp(-clusters.age(i) / decay)
        labels[i] = int(near.argmax()) if len(near) and near.max() >= least else clusters.count
        clusters.add(i, int(labels[i]))
    return labels


def bertopic(corpus: Grouped, vectors: Float32Array) -> Groupings:
    """Yield BERTopic's topics (Grootendorst, 2022), with its own UMAP and HDBSCAN, by the minimum size of a topic.

    An outlier is a group of its own. Only UMAP's seed is set, so that runs repeat.
    """
    from bertopic import BERTopic
    from umap import UMAP

    for smallest in TOPICS:
        reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
        model = BERTopic(min_topic_size=smallest, umap_model=reduced)
        topics, _ = model.fit_transform([d.full_text for d in corpus.documents], embeddings=vectors)
        yield smallest, _without_noise(np.array(topics))


def miranda(corpus: Grouped, vectors: Float32Array | None = None) -> Groupings:
    """Yield the groupings of a stream by several similarities to clusters (Miranda et al., EMNLP 2018), by threshold.

    As in the paper: TF-IDF of words, of names and of the opening, the cosine of `vectors` of all languages, and the
    distance in time; weights learned from the first half with its true clusters, and the best cluster joined if its
    probability is high enough. Names are words with a capital or a digit, since there is no tagger; one logistic
    regression stands for the ranking and the joining SVM.
    """
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression

    days = np.array([day_of(d.full_text) for d in corpus.documents])
    order = np.argsort(np.nan_to_num(days, nan=0.0), kind="stable").tolist()
    texts = [d.full_text for d in corpus.documents]
    names = [" ".join(w for w in text.split() if w[:1].isupper() or w[:1].isdigit()) for text in texts]
    parts = [_weights(texts), _weights(names), _weights([text[:OPENING] for text in texts])]
    parts += [] if vectors is None else [csr_array(vectors)]
    clusters, first = _Clusters(parts, days), corpus.half()
    told: dict[int, int] = {}
    x, y = [], []
    for i in (i for i in order if first[i]):
        near, gold = clusters.near(i), int(corpus.gold[i])
        rivals = near.sum(axis=1) if len(near) else np.zeros(0)
        if gold in told:
            x.append(near[told[gold]])
            y.append(True)
            rivals[told[gold]] = -1
        if len(rivals) and rivals.max() >= 0:
            x.append(near[int(rivals.argmax())])
            y.append(False)
        told.setdefault(gold, clusters.count)
        clusters.add(i, told[gold])
    model = LogisticRegression().fit(np.array(x), np.array(y))
    for least in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        clusters, labels = _Clusters(parts, days), np.empty(len(texts), np.int64)
        for i in order:
            near = clusters.near(i)
            chances = model.predict_proba(near)[:, 1] if len(near) else np.zeros(0)
            to = int(chances.argmax()) if len(chances) and chances.max() >= least else clusters.count
            clusters.add(i, to)
            labels[i] = to
        yield least, labels


class _Clusters:
    """Clusters of a stream: sums of their documents' weights, and the day of the last one."""

    def __init__(self, parts: list[Any], days: Any) -> None:
        self.count, self._parts, self._days = 0, parts, np.nan_to_num(days, nan=0.0)
        self._sums = [np.zeros(part.shape, np.float32) for part in parts]
        self._lengths, self._last = np.ones((len(parts), len(days))), np.zeros(len(days))

    def near(self, i: int) -> Any:
        """Return the similarities of a document to each cluster, [count, parts + 1]."""
        found = [
            sums[: self.count, row.indices] @ row.data / lengths[: self.count]
            for row, sums, lengths in zip(
                (p[[i]] for p in self._parts), self._sums, self._lengths, strict=True
            )
        ]
        return np.column_stack([*found, np.exp(-((self.age(i) / NEAR) ** 2) / 2)])

    def age(self, i: int) -> Any:
        """Return the days from the last document of each cluster to a document, [count]."""
        return self._days[i] - self._last[: self.count]

    def add(self, i: int, to: int) -> None:
        """Put a document into a cluster; `count` begins another one."""
        self.count, self._last[to] = max(self.count, to + 1), self._days[i]
        for at, (part, sums) in enumerate(zip(self._parts, self._sums, strict=True)):
            row = part[[i]]
            sums[to, row.indices] += row.data
            self._lengths[at, to] = np.linalg.norm(sums[to]) or 1.0


def _dense(corpus: Grouped) -> Any:
    x = tfidf(corpus)
    return (x @ x.T).toarray()


WORDS: Mapping[str, Callable[[Grouped], Groupings]] = {
    "average linkage, TF-IDF": lambda corpus: _linkage(_dense(corpus)),
    "HDBSCAN, TF-IDF": lambda corpus: _hdbscan(_reduced(corpus)),
    "single pass with decay, TF-IDF": single_pass,
    "Miranda et al. (2018)": miranda,
}
VECTORS: Mapping[str, Callable[[Grouped, Float32Array], Groupings]] = {
    "average linkage": lambda corpus, vectors: _linkage(vectors @ vectors.T),
    "HDBSCAN": lambda corpus, vectors: _hdbscan(vectors),
    "Miranda et al. (2018)": miranda,
    **({"BERTopic": bertopic} if find_spec("bertopic") else {}),
}
