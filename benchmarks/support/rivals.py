"""Other tools that link two collections: scores of all pairs, and an assignment of texts to documents.

A run holds the best KEPT documents of each text with their scores, as the programs return them. RapidFuzz,
recordlinkage and Splink are not dependencies: their runs are skipped if they are not installed.
"""

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from indexes.dtypes import Float32Array
from indexes.interface import Document
from linker.encoders.loading import load_encoder
from linker.engine.engine import Engine

Run = dict[str, dict[str, float]]
KEPT = 30
NEAREST = 10  # neighbours of CSLS
BEGINNING, AT_ONCE = 300, 50  # characters per text; texts per batch
RARE = 10
SIZES = [8, 5, 3, 2, 1]  # words in common


def bm25(directory: Path, texts: Sequence[Document]) -> Run:
    """Return the best documents of an index by BM25."""
    answer = Engine(directory).search([d.full_text for d in texts], KEPT, mode="bm25")
    return {
        d.id: dict(zip(hits.ids, hits.scores.tolist(), strict=True))
        for d, hits in zip(texts, answer.hits, strict=True)
    }


def assigned(run: Mapping[str, Mapping[str, float]]) -> Run:
    """Assign texts to documents one to one, maximising the sum of the scores; the others follow by score.

    Sparse (Jonker and Volgenant): only documents of the run, and "none" at the lowest score of all.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    ids = list(dict.fromkeys(id_ for of in run.values() for id_ in of))
    column = {id_: i for i, id_ in enumerate(ids)}
    cells = [(i, column[id_], score) for i, of in enumerate(run.values()) for id_, score in of.items()]
    high, low = max(score for *_, score in cells), min(0, *(score for *_, score in cells))
    top, spread = high + 1, high + 1 - low
    cells = [(i, j, top - score) for i, j, score in cells] + [
        (i, len(ids) + i, spread) for i in range(len(run))
    ]
    rows, columns, weights = (np.array(part) for part in zip(*cells, strict=True))
    graph = csr_array((weights, (rows, columns)), shape=(len(run), len(ids) + len(run)))
    _, partner = min_weight_full_bipartite_matching(graph)
    return {
        id_: dict(of) | ({ids[j]: float(top)} if j < len(ids) else {})
        for (id_, of), j in zip(run.items(), partner.tolist(), strict=True)
    }


def csls(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by MiniLM: twice the cosine minus both mean cosines with the ten nearest (CSLS)."""
    encoder = load_encoder("minilm")
    x, y = (encoder.encode([d.full_text for d in some]) for some in (texts, documents))
    cosines = np.asarray(x @ y.T, dtype=np.float32)
    near = [np.sort(c, axis=1)[:, -NEAREST:].mean(axis=1) for c in (cosines, cosines.T)]
    return _run(2 * cosines - near[0][:, None] - near[1], texts, documents)


def rapidfuzz(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by RapidFuzz's token set ratio."""
    from rapidfuzz.fuzz import token_set_ratio
    from rapidfuzz.process import cdist
    from rapidfuzz.utils import default_process

    first, second = ([d.full_text for d in some] for some in (texts, documents))
    scores = cdist(first, second, scorer=token_set_ratio, processor=default_process)
    return _run(scores, texts, documents)


def recordlinkage(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by recordlinkage's cosine of their beginnings' q-grams, over all pairs.

    It holds the q-grams of every pair at once, so a few texts are compared at a time.
    """
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from recordlinkage import Compare, Index

        compare, lines = Compare(), []
        compare.string("text", "text", method="cosine")
        others = pandas.DataFrame({"text": [d.full_text[:BEGINNING] for d in documents]})
        for start in range(0, len(texts), AT_ONCE):
            some = pandas.DataFrame(
                {"text": [d.full_text[:BEGINNING] for d in texts[start : start + AT_ONCE]]}
            )
            found = compare.compute(Index().full().index(some, others), some, others)
            lines.append(found[0].to_numpy(np.float32).reshape(len(some), len(others)))
    return _run(np.concatenate(lines), texts, documents)


def splink(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by Splink (Fellegi and Sunter by EM), over all pairs.

    Two columns are compared by their number of common words: words in at most RARE texts, and all others.
    """
    import pandas
    from splink import DuckDBAPI, Linker, SettingsCreator
    from splink.comparison_library import ArrayIntersectAtSizes

    words = [[set(re.findall(r"\w+", d.full_text.lower())) for d in some] for some in (texts, documents)]
    seen = Counter(word for side in words for of in side for word in of)
    frames = [
        pandas.DataFrame(
            {
                "unique_id": range(len(side)),
                "rare": [sorted(w for w in of if seen[w] <= RARE) for of in side],
                "common": [sorted(w for w in of if seen[w] > RARE) for of in side],
            }
        )
        for side in words
    ]
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[ArrayIntersectAtSizes("rare", SIZES), ArrayIntersectAtSizes("common", SIZES)],
        blocking_rules_to_generate_predictions=["1=1"],
        probability_two_random_records_match=1 / len(documents),
        retain_matching_columns=False,
    )
    base = DuckDBAPI()
    tables = [
        base.register(frame, dataset_display_name=name) for name, frame in zip("ab", frames, strict=True)
    ]
    linker = Linker(tables, settings)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6)
    linker.training.estimate_parameters_using_expectation_maximisation("1=1")
    pairs = linker.inference.predict(threshold_match_weight=-1000).as_pandas_dataframe()
    scores = np.full((len(texts), len(documents)), -1000, np.float32)
    scores[pairs.unique_id_l, pairs.unique_id_r] = pairs.match_weight
    return _run(scores, texts, documents)


RIVALS: Mapping[str, Callable[[Sequence[Document], Sequence[Document]], Run]] = {
    "MiniLM + CSLS": csls,
    "RapidFuzz": rapidfuzz,
    "recordlinkage": recordlinkage,
    "Splink": splink,
}


def _run(scores: Float32Array, texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by `scores` [texts, documents]; ties are in a fixed random order."""
    order = list(range(len(documents)))
    random.Random(0).shuffle(order)
    out = {}
    for text, line in zip(texts, scores[:, order], strict=True):
        best = np.argsort(-line, kind="stable")[:KEPT].tolist()
        out[text.id] = {documents[order[j]].id: float(line[j]) for j in best}
    return out
