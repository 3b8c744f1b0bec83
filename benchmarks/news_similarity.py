"""News similarity on news-similarity: entity groups, encoder, fusion with entities, semi-supervision by BM25 sampling.

Five-fold cross-validation on train determines how sampled pairs are used; test is evaluated at the end.
Every vector, entity and finished system is saved under --work, so that a killed run can resume.

    python -m benchmarks.news_similarity --work FOLDER [--seeds 3] [--tuned]
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import kept, shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from indexes.dtypes import Float32Array, Float64Array
from indexes.text.bm25 import Bm25Index
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import pearson, williams_from_scores
from linker.papers.news.articles import NewsPair, keep_long, read_news, targets
from linker.papers.news.fusion import FusionConfig, fit_fusion
from linker.papers.news.overlap import Overlap
from linker.papers.news.recognise import DEFAULT, Recogniser
from linker.papers.news.selftrain import articles_of, sample_pairs
from linker.papers.news.siamese import RememberingEncoder, SiameseConfig, cosines
from linker.papers.news.similarity import (
    Columns,
    encoder_columns,
    feature_names,
    fixed_columns,
    kind_columns,
    out_of_fold,
    siamese_trainer,
    split,
)
from linker.papers.news.similarity_config import PRESETS, SimilarityConfig

SAMPLES = 2000  # resamplings of the bootstrap
GROUPS = ("GEO", "ORG", "DATE", "QTY")
FIVE = (*GROUPS, "cosine")
AUGMENTED = ("encoder", "encoder + entities", "recommended")
PAPER, PAPER_CODE = FusionConfig(output="sigmoid"), FusionConfig(output="linear")
FOLDS = 5
# How the encoder learns from sampled pairs: (epochs on them alone, epochs on graded pairs after that).
CHOICES = {"mixed with graded pairs": (0, 2), "before graded pairs": (1, 6)}
# Pairs (A, B) that test whether A is ahead of B: the steps of the paper, then the gain of a step from the network
# alone.
STEPS = (
    ("encoder", "usem3, zero-shot"),
    ("encoder + entities", "encoder"),
    ("encoder + entities", "encoder, same network"),
    ("recommended", "encoder"),
    ("recommended", "encoder + entities"),
    ("recommended", "recommended without entities"),
    ("augmented encoder", "encoder"),
    ("augmented encoder + entities", "augmented encoder"),
    ("augmented encoder + entities", "encoder + entities"),
    ("augmented recommended", "recommended"),
    ("augmented recommended", "augmented encoder"),
    ("augmented recommended", "usem3, zero-shot"),
)
Systems = dict[str, Float64Array]  # name → predicted similarities of the judged pairs [n]


class StoredEncoder(RememberingEncoder):
    """A caching encoder whose cache is a file."""

    def __init__(self, encoder: Encoder, path: Path) -> None:
        super().__init__(encoder)
        self._path = path
        if path.exists():
            stored = np.load(path)
            self._known = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def encode(self, texts: Sequence[str], *, batch_size: int = 16, progress: bool = False) -> Float32Array:
        known = len(self._known)
        vectors = super().encode(texts, batch_size=batch_size, progress=progress)
        if len(self._known) > known:
            names, values = list(self._known), np.stack(list(self._known.values()))
            np.savez(self._path, texts=np.array(names), vectors=values)
        return vectors


@dataclass(frozen=True)
class Bench:
    """The inputs that all systems share."""

    recogniser: Recogniser
    encoder: Encoder

    def systems(
        self,
        train: Sequence[NewsPair],
        judged: Sequence[NewsPair],
        config: SimilarityConfig,
        pseudo: Sequence[NewsPair] = (),
    ) -> tuple[Systems, Systems]:
        """Train on `train`; return each fusion's predictions for the judged pairs and for pairs sampled from
        `train`."""
        fit = siamese_trainer(config, self.encoder)
        overlap = Overlap.fit(dict.fromkeys(s.full for p in train for s in (p.first, p.second)))
        kinds = tuple(sorted({pair.kind for pair in train}))
        siamese = fit(train, pseudo)
        learned = self._fixed(train, config, overlap, kinds) | out_of_fold(train, pseudo, config, fit)
        every = feature_names(config.features, kinds)
        without = tuple(name for name in every if name not in GROUPS)
        gold = targets(train)
        fusions = {
            "encoder, same network": (("cosine",), PAPER),
            "encoder + entities": (FIVE, PAPER),
            "encoder + entities, linear output": (FIVE, PAPER_CODE),
            "recommended": (every, config.fusion),
            "recommended without entities": (without, config.fusion),
        }
        fitted = {
            name: fit_fusion(_matrix(learned, columns), gold, replace(fusion, seed=config.fusion.seed))
            for name, (columns, fusion) in fusions.items()
        }

        def predict(pairs: Sequence[NewsPair]) -> Systems:
            columns = self._fixed(pairs, config, overlap, kinds)
            columns |= encoder_columns(siamese, pairs, config.features)
            found = {"usem3, zero-shot": columns["backbone"]}
            found |= {f"entities: {group}": columns[group] for group in GROUPS}
            found["encoder"] = columns["cosine"]
            return found | {
                name: fitted[name].predict(_matrix(columns, fusions[name][0])) for name in fusions
            }

        sampled = [] if pseudo else sample_pairs(articles_of(train), Bm25Index("none"), train)
        return predict(judged), predict(sampled) if sampled else {}

    def augmented(
        self,
        train: Sequence[NewsPair],
        judged: Sequence[NewsPair],
        config: SimilarityConfig,
        labels: Float64Array,
        choice: str,
    ) -> Systems:
        """Train on `train` and on the pairs that BM25 samples from it, with `labels` as their similarities."""
        sampled = sample_pairs(articles_of(train), Bm25Index("none"), train)
        scores = 4 - 3 * labels.clip(0, 1)
        pseudo = [replace(pair, score=float(x)) for pair, x in zip(sampled, scores, strict=True)]
        early, epochs = CHOICES[choice]
        siamese = replace(config.siamese, epochs=epochs)
        config = replace(config, siamese=siamese, pseudo_epochs=early)
        found, _ = self.systems(train, judged, config, pseudo)
        return {name: found[name] for name in AUGMENTED}

    def _fixed(
        self, pairs: Sequence[NewsPair], config: SimilarityConfig, overlap: Overlap, kinds: tuple[str, ...]
    ) -> Columns:
        fixed = fixed_columns(pairs, config.features, self.recogniser, overlap)
        return fixed | kind_columns(pairs, kinds)


def run_fold(bench: Bench, train: Sequence[NewsPair], fold: int) -> dict[str, Systems]:
    """Return predictions for a fifth of train by systems trained on the rest, for each way of using sampled pairs."""
    rows = set(split(len(train), FOLDS, 1)[fold].tolist())
    dev = [pair for row, pair in enumerate(train) if row in rows]
    rest = [pair for row, pair in enumerate(train) if row not in rows]
    config = PRESETS["recommended"]
    found, labels = bench.systems(rest, dev, config)
    augmented = {c: bench.augmented(rest, dev, config, labels["recommended"], c) for c in CHOICES}
    return {"no sampled pairs": {name: found[name] for name in AUGMENTED}, **augmented}


def choose(folds: Sequence[dict[str, Systems]], train: Sequence[NewsPair]) -> dict[str, Any]:
    """Return each use's out-of-fold Pearson on all of train, and the use with which the fused system is best."""
    gold = targets([train[row] for fold in split(len(train), FOLDS, 1) for row in fold])
    table: dict[str, dict[str, float]] = {}
    for use in folds[0]:
        table[use] = {
            name: round(pearson(np.concatenate([fold[use][name] for fold in folds]), gold), 4)
            for name in AUGMENTED
        }
    return {"table": table, "choice": max(CHOICES, key=lambda choice: table[choice]["recommended"])}


def run_seed(
    bench: Bench, train: Sequence[NewsPair], test: Sequence[NewsPair], choice: str, seed: int
) -> Systems:
    """Return every system's similarities of the test pairs."""
    base = PRESETS["recommended"]
    config = replace(base, siamese=replace(base.siamese, seed=seed), fusion=replace(base.fusion, seed=seed))
    found, labels = bench.systems(train, test, config)
    augmented = bench.augmented(train, test, config, labels["recommended"], choice)
    return found | {f"augmented {name}": values for name, values in augmented.items()}


def run_tuned(train: Sequence[NewsPair], test: Sequence[NewsPair]) -> Systems:
    """Return MiniLM with its two upper layers tuned, texts truncated at 128 tokens (it knows mainly English)."""
    siamese = SiameseConfig(
        "minilm", frozen=False, max_length=128, layers=2, epochs=2, batch_size=16, lr=1e-4
    )
    config = replace(PRESETS["paper"], siamese=siamese)
    fit = siamese_trainer(config)
    both = [p.first.full for p in test], [p.second.full for p in test]
    return {"MiniLM, two layers tuned": cosines(fit(train, ()), *both)}


def summarise(systems: Sequence[Systems], test: Sequence[NewsPair]) -> dict[str, Any]:
    """Return mean and spread over seeds, 95% intervals over pairs, language pairs, and Williams tests per seed."""
    gold = targets(test)
    kinds = {kind: np.array([p.kind == kind for p in test]) for kind in sorted({p.kind for p in test})}
    draws = np.random.default_rng(0).integers(0, len(gold), (SAMPLES, len(gold)))
    table = {}
    for name in systems[0]:
        seeds = [np.asarray(found[name]) for found in systems if name in found]
        rs = [pearson(values, gold) for values in seeds]
        spread = [np.mean([pearson(v[rows], gold[rows]) for v in seeds]) for rows in draws]
        table[name] = {
            "pearson": round(float(np.mean(rs)), 4),
            "seeds": [round(r, 4) for r in rs],
            "interval": [round(float(x), 4) for x in np.percentile(spread, [2.5, 97.5])],
            "kinds": {
                kind: None if np.isnan(r) else round(r, 3)
                for kind, mask in kinds.items()
                for r in [float(np.mean([pearson(v[mask], gold[mask]) for v in seeds]))]
            },
        }
    tests = {
        f"{a} > {b}": [
            round(williams_from_scores(gold, np.asarray(found[a]), np.asarray(found[b])).p, 4)
            for found in systems
        ]
        for a, b in STEPS
    }
    return {"pairs": len(gold), "systems": table, "williams_p": tests}


def _matrix(columns: Columns, names: Sequence[str]) -> Float64Array:
    return np.column_stack([columns[name] for name in names])


def _pairs(split_: str) -> tuple[list[NewsPair], str]:
    kept = keep_long(read_news(shared_data() / "news-similarity" / f"{split_}.jsonl.gz"))
    return list(kept.pairs), kept.remark or "none left out"


def _minilm(test: Sequence[NewsPair]) -> Float64Array:
    encoder = load_encoder("minilm@256")
    first, second = (
        encoder.encode([s.full for s in side], batch_size=16)
        for side in ([p.first for p in test], [p.second for p in test])
    )
    return np.asarray(np.einsum("nd,nd->n", first, second), np.float64)


def once(work: Path, name: str, make: Callable[..., Any], *args: Any) -> Any:
    """Return `make(*args)`, saved under this name, or the result of an earlier run."""
    found = kept(work / f"{name}.json", lambda: make(*args))
    print(f"{name}: done after {time.process_time():.0f} s of CPU", flush=True)
    return found


@benchmark(seed=0, work=KEPT, seeds=3, tuned=(False, "also tune MiniLM (some ten minutes of CPU)"))
def measured(options: Arguments) -> Results:
    """Train and judge all systems, and compare them."""
    work = options.work
    recogniser = Recogniser({"": DEFAULT}, work / "entities.jsonl")
    bench = Bench(recogniser, StoredEncoder(load_encoder("usem3"), work / "usem3.npz"))
    (train, left_train), (test, left_test) = _pairs("train"), _pairs("test")
    folds = [once(work, f"fold{fold}", run_fold, bench, train, fold) for fold in range(FOLDS)]
    dev = choose(folds, train)
    choice = dev["choice"]
    seeds = [
        once(work, f"seed{seed} {choice}", run_seed, bench, train, test, choice, seed)
        for seed in range(options.seeds)
    ]
    extra = once(work, "minilm", lambda: {"MiniLM, zero-shot": _minilm(test)})
    if options.tuned or (work / "tuned.json").exists():
        extra |= once(work, "tuned", run_tuned, train, test)
    seeds[0] = extra | seeds[0]
    left_out = {"train": left_train, "test": left_test}
    return summarise(seeds, test) | {"dev": dev, "left_out": left_out, "train": len(train)}
