"""How good are the groups of a corpus, compared with other ways to cluster it, and what do they cost?

`python -m benchmarks.groups --work FOLDER` → benchmarks/results/groups.json. Half of the true groups of each corpus
are used to choose every system's threshold (the best B-cubed F1); the results are for the other half. The model for use
without links was learned from the first halves of `tweets` and `claims`, training statements and judged news
(`--only learn` prints it); for `tweets`, only from their first half and judged news. `with links` also knows the
groups of the first half. The other systems: average linkage and HDBSCAN (scikit-learn) on TF-IDF and an
encoder's vectors, on which BERTopic runs too if it is installed, and single-pass clustering with time decay,
as in topic detection and tracking (Allan et al., 1998). `bbc-news` and `news-topics` have categories, not stories;
`pages` are manual pages in six languages, whose index has a multilingual encoder. `promise`: the share of simulations
in which a promise was kept, and in which the interval of the recall held. `languages`: the weights for two languages,
learned without one of them. `small`: corpora of up to 300 documents. `drift`, `arriving-…` and `following`: documents
that arrive. FOLDER is not deleted.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import group_arrivals, group_data, group_learning
from benchmarks.support.common import in_child
from benchmarks.support.group_data import Grouped, lead, measured, per_document
from benchmarks.support.group_learning import ACROSS, DEFAULT, evidence_of, labelled, stories_in
from benchmarks.support.group_rivals import VECTORS, WORDS, vectors_of
from benchmarks.support.harness import run_parts
from indexes.dtypes import BoolArray, Float32Array, Int64Array
from indexes.interface import Document
from linker.engine.engine import Engine
from linker.scoring.groups import evidence as pairs_of
from linker.scoring.groups.asking import recall, strata
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import PairEvidence, PairModel
from linker.scoring.groups.stories import Stories
from linker.scoring.probability.promise import promise

CORPORA: dict[str, Callable[[], Grouped]] = {
    "tweets": group_data.tweets,
    "claims": lambda: group_data.tweets(claims=True),
    "statements": lambda: group_data.statements("test", 1000),
    "bbc-news": group_data.categories,
    "news-topics": group_data.topics,
    "pages": group_data.pages,
}
TAUGHT_RIVAL = "Miranda et al. (2018)"  # compared with linker "with links", because it also learns from links
# The encoder of an index, which also finds pairs; elsewhere, MiniLM's vectors only score them.
INDEXED = {"pages": ACROSS}
TITLES = {"minilm": "MiniLM", ACROSS: "USE"}
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
JUDGED, TRIALS, PROMISED = 150, 1000, (0.8, 0.9)
SIZES = (10_000, 30_000, 100_000)
TARGET = 1_000_000


def compared(name: str, work: Path) -> dict[str, Any]:
    """Return the figures of all systems on the second half of a corpus."""
    corpus = CORPORA[name]()
    first = corpus.half()
    answers: dict[str, tuple[Any, Int64Array]] = {}
    for system, found in _systems(corpus, first, work, name):
        scored = [(_f1(labels[first], corpus.gold[first]), i) for i, (_, labels) in enumerate(found)]
        answers[system] = found[max(scored, key=lambda pair: (pair[0], -pair[1]))[1]]
        if system == "linker":
            answers["linker, as it comes"] = next(one for one in found if one[0] == DEFAULT)
    second = ~first
    gold = corpus.gold[second]
    rows: dict[str, Any] = {"documents": len(corpus.documents), "measured": int(second.sum())}
    rows["each alone"] = measured(np.arange(len(gold)), gold)
    for system, (setting, labels) in answers.items():
        rows[system] = {"setting": setting, **measured(labels[second], gold)}
        if not system.startswith("linker"):
            counterpart = answers.get(_own(system), answers.get(f"linker, with links and {TITLES[ACROSS]}"))
            assert counterpart
            rows[system]["lead of linker"] = lead(counterpart[1][second], labels[second], gold)
    return rows


def _own(rival: str) -> str:
    """Return the variant of linker that gets the same information as the rival."""
    name, _, vectors = rival.partition(", ")
    if name != TAUGHT_RIVAL:
        return "linker"
    return f"linker, with links and {vectors}" if vectors else "linker, with links"


def _f1(found: Int64Array, gold: Int64Array) -> float:
    _, found = np.unique(found, return_inverse=True)
    p, r = (float(part.mean()) for part in per_document(found, gold))
    return 2 * p * r / (p + r)


def _systems(
    corpus: Grouped, first: BoolArray, work: Path, name: str
) -> Iterator[tuple[str, list[tuple[Any, Int64Array]]]]:
    """Yield each system with its groupings: the setting, and the labels of all documents."""
    found = evidence_of(corpus, work / name, INDEXED.get(name, "none"))
    known, same = labelled(corpus, found, first)
    model = SHIPPED.adapt(found)
    # The shipped model has seen tweets of both halves, since `claims` is halved in another way.
    if name == "tweets":
        news = group_data.news()
        model = pairs_of.fit([(known, same), labelled(news, evidence_of(news, work / "news"), news.judged)])
    yield "linker", _by_thresholds(corpus, found, model)
    if name not in INDEXED:
        yield "linker, with links", _by_thresholds(corpus, found, model.relearn(known, same))
    for rival, groupings in WORDS.items():
        yield rival, list(groupings(corpus))
    title = TITLES[INDEXED.get(name, "minilm")]
    vectors = _of_index(corpus, work / name) if name in INDEXED else vectors_of(corpus, work / f"{name}.npy")
    with_vectors = found if name in INDEXED else _with(found, vectors)
    known, same = labelled(corpus, with_vectors, first)
    taught = (model if name in INDEXED else model.adapt(with_vectors)).relearn(known, same)
    yield f"linker, with links and {title}", _by_thresholds(corpus, with_vectors, taught)
    for rival, by_vectors in VECTORS.items():
        yield f"{rival}, {title}", list(by_vectors(corpus, vectors))
    if name in INDEXED:
        yield (
            f"linker, with links and {title}, promised {PROMISED[1]:.0%}",
            [_promised(corpus, first, work / name)],
        )


def _promised(corpus: Grouped, first: BoolArray, directory: Path) -> tuple[Any, Int64Array]:
    """Return the groups of an index that are promised a precision by the links of the first half."""
    ids = [d.id for d in corpus.documents]
    known = np.flatnonzero(first).tolist()
    judged = {
        (ids[a], ids[b]): True
        for a, b in itertools.combinations(known, 2)
        if corpus.gold[a] == corpus.gold[b]
    }
    found = Engine.open(directory).group(judged, precision=PROMISED[1])
    numbers = {member.id: member.group for member in found.members}
    threshold = round(found.promise.threshold, 4) if found.promise else "none"
    return threshold, np.array([numbers[id_] for id_ in ids], np.int64)


def _of_index(corpus: Grouped, directory: Path) -> Float32Array:
    """Return the vectors of the documents in an index, float32 [n, d], with unit rows."""
    collection = Engine.open(directory).collection
    assert collection.manifest.encoder is not None
    rows = collection.rows.locate([d.id for d in corpus.documents])
    vectors = np.asarray(collection.documents.vectors(collection.manifest.encoder.dim)[0][rows], np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _with(found: PairEvidence, vectors: Any) -> PairEvidence:
    """Return the evidence for the same pairs, of documents in one language, with the cosine of vectors."""
    near = np.einsum("nd,nd->n", vectors[found.pairs[:, 0]], vectors[found.pairs[:, 1]])
    leads = np.zeros((len(near), 2))
    names = (*found.names, *pairs_of.BY_VECTORS)
    return dataclasses.replace(found, values=np.column_stack([found.values, near, leads]), names=names)


def _by_thresholds(corpus: Grouped, found: PairEvidence, model: PairModel) -> list[tuple[Any, Int64Array]]:
    return [(t, stories_in(corpus, found, model, t).labels) for t in THRESHOLDS]


def promises(work: Path) -> dict[str, Any]:
    """Return how often promises were kept: JUDGED pairs drawn from groups in the second half of `claims`."""
    corpus = CORPORA["claims"]()
    stories = stories_in(corpus, evidence_of(corpus, work / "claims"), SHIPPED, DEFAULT)
    second = np.flatnonzero(~corpus.half() & (stories.leader == np.arange(len(corpus.documents))))
    parts = [second[stories.labels[second] == label] for label in np.unique(stories.labels[second])]
    ends = [np.stack([part[a] for a in np.triu_indices(len(part), 1)], axis=1) for part in parts]
    pairs = np.concatenate(ends)
    scores, right = stories.certain[pairs[:, 0]], corpus.gold[pairs[:, 0]] == corpus.gold[pairs[:, 1]]
    rng, rows = np.random.default_rng(0), {}
    for precision in PROMISED:
        successes, certificates, share = 0, 0, 0.0
        for _ in range(TRIALS):
            sample = rng.permutation(len(pairs))[:JUDGED]
            certified = promise(scores[sample], right[sample], precision)
            above = scores >= (certified.threshold if certified else np.inf)
            successes += not above.any() or bool(right[above].mean() >= precision)
            certificates += certified is not None
            share += float(above.mean())
        rows[str(precision)] = {
            "kept": successes / TRIALS, "given": certificates / TRIALS, "share_of_pairs": round(share / TRIALS, 4),
        }  # fmt: skip
    rows["recall"] = _recalls(corpus, stories)
    return {"pairs": len(pairs), "precision": round(float(right.mean()), 4), "judged": JUDGED, **rows}


def _recalls(corpus: Grouped, stories: Stories) -> dict[str, float]:
    """Return how often the interval of the recall held, and its mean width, over samples of pairs to judge."""
    gold = {d.id: int(story) for d, story in zip(corpus.documents, corpus.gold, strict=True)}
    one, other = stories.pairs.T
    within = [np.flatnonzero(stories.labels == label) for label in np.unique(stories.labels)]
    texts = [part[stories.leader[part] == part] for part in within]
    inside = sum(
        corpus.gold[a] == corpus.gold[b]
        for part in texts
        for a, b in itertools.combinations(part.tolist(), 2)
    )
    between = (corpus.gold[one] == corpus.gold[other]) & (stories.labels[one] != stories.labels[other])
    true = inside / (inside + between.sum())
    held, widths = 0, []
    for seed in range(TRIALS):
        layers = strata(stories, [*gold], seed)
        _, low, high = recall(
            [
                (layer.of, len(layer.pairs), sum(gold[a] == gold[b] for a, b in layer.pairs))
                for layer in layers
            ]
        )
        held += low <= true <= high
        widths.append(high - low)
    return {"true": round(float(true), 4), "held": held / TRIALS, "width": round(float(np.mean(widths)), 4)}


def cost(work: Path) -> dict[str, Any]:
    """Return CPU time and memory of `linker.group` at three sizes, and the exponent from the second to the third.

    The documents are a random sample of statements, articles, and versions of both that lack up to half of the words.
    """
    every, rng = group_data.statements("train", 20_000, 20_000).documents, np.random.default_rng(0)
    for number in range(len(every), SIZES[-1]):
        one, dropped = every[int(rng.integers(number))], rng.random() / 2
        words = one.text.split()
        kept = itertools.compress(words, (rng.random(len(words)) >= dropped).tolist())
        every.append(Document(f"version-{number}", " ".join(kept), one.title))
    order = rng.permutation(len(every))
    rows: dict[str, Any] = {}
    for size in SIZES:
        path = work / f"cost-{size}.jsonl"
        some = [every[i] for i in order[:size].tolist()]
        path.write_text(
            "".join(json.dumps({"id": d.id, "title": d.title, "text": d.text}) + "\n" for d in some)
        )
        spent = in_child(_grouped, (path,))
        print(size, spent, flush=True)
        rows[str(size)] = {
            "words": round(float(np.mean([len(d.full_text.split()) for d in some]))),
            "cpu_s": spent.cpu_s, "peak_mib": spent.peak_mib, "per_cpu_minute": round(60 * size / spent.cpu_s),
        }  # fmt: skip
    small, large = (rows[str(size)] for size in SIZES[-2:])
    times = math.log(SIZES[-1] / SIZES[-2])
    exponent = math.log(large["cpu_s"] / small["cpu_s"]) / times
    memory = math.log(large["peak_mib"] / small["peak_mib"]) / times
    more = TARGET / SIZES[-1]
    return {
        **rows, "exponent": round(exponent, 3), "memory_exponent": round(memory, 3), "extrapolated_to": TARGET,
        "cpu_minutes": round(large["cpu_s"] * more**exponent / 60, 1),
        "gib": round(large["peak_mib"] * more**memory / 1024, 1),
    }  # fmt: skip


def drift(work: Path) -> dict[str, Any]:
    """Return how far groups of arriving documents differ from those of all documents."""
    corpora = {"tweets": CORPORA["tweets"], "news": group_data.news, "bbc-news": CORPORA["bbc-news"]}
    return {name: group_arrivals.drift(corpus()) for name, corpus in corpora.items()}


def _grouped(path: Path) -> None:
    from linker.cli.commands.grouping import group

    group(path, path.with_suffix(".csv"))


if __name__ == "__main__":
    run_parts(
        {name: functools.partial(compared, name) for name in CORPORA}
        | {f"arriving-{size}": functools.partial(group_arrivals.cost, size) for size in group_arrivals.SIZES}
        | {
            "following": group_arrivals.following,
            "promise": promises,
            "languages": group_learning.languages,
            "small": group_learning.small,
            "cost": cost,
            "drift": drift,
            "learn": lambda work: print(group_learning.learn(work)),
        },
        "learn",
    )
