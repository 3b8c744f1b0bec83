"""Fit the rankers that `auto` starts from if links are few or missing: linker/crosslingual/ranking/pooled.json.

Training pages only, variant `hard`, at most 300 pages per pair; the file names each ranker's languages. Each pair is
described with its targets and without them; the verifier, which makes probabilities of the ranker's scores, is fitted
on both, with each pair scored by the ranker of the others. `--modes` fits only the named rankers; the others stay.

    python -m benchmarks.pool_rankers [--lists FOLDER]    # caches results in FOLDER, one file per pair and mode
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.support.common import ROOT, shared_data
from indexes.dtypes import Float64Array, Int64Array
from linker.crosslingual.lexicon.dictionaries import read_dictionary
from linker.crosslingual.pages.pages import read_pages
from linker.crosslingual.ranking.calibration import compete, temperature
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.features import Lists
from linker.crosslingual.ranking.learning import describe, gold_of, out_of_fold
from linker.crosslingual.ranking.pooled import Pooled, to_json
from linker.crosslingual.ranking.ranker import Ranker, fit_ranker
from linker.crosslingual.ranking.verification import first_candidates, fit_calibrated, names_of
from linker.crosslingual.task import NO_LINKS, read_links

LANGUAGES = ("de", "fr", "ru", "tr", "zh")
MODES = ("both", "links", "dictionary")
MOST = 300
PENALTY = 30.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Training lists of one language pair in one mode, at most 300, with their targets and without.

    `right` int64 [n]: the positions of the linked targets in `lists`, −1 where one is missing.
    """

    lists: Lists
    right: Int64Array
    without: Lists


def sample(language: str, mode: str) -> Sample:
    """Describe a language's training pages as `auto` would meet them in this mode."""
    folder = shared_data() / "linked-pages"
    source = read_pages(folder / "hard" / f"{language}.jsonl.gz", language)
    target = read_pages(folder / "hard" / "en.jsonl.gz", "en")
    links = read_links(folder / "qrels" / f"{language}.train.txt", source, target)
    words = read_dictionary(shared_data() / "dictionaries" / f"{language}-en.tsv.gz").pairs
    evidence = AllEvidence(source, target, () if mode == "links" else words)
    others = np.setdiff1d(np.arange(len(source)), links[:, 0])
    if mode == "dictionary":
        learned = evidence.learn(NO_LINKS)
        lists, without = (
            describe(evidence, learned, links[:, 0], others, taken, evidence.size)
            for taken in (NO_LINKS[:, 1], links[:, 1])
        )
        return Sample(lists, lists.right(gold_of(links)), without)
    folds = out_of_fold(evidence, links, others)
    lists, without = joined([f.lists for f in folds]), joined([f.without for f in folds])
    return Sample(lists, np.concatenate([f.right for f in folds]), without)


def joined(parts: Sequence[Lists]) -> Lists:
    """Return the first 300 lists of all parts."""
    rows, targets, features = (
        np.concatenate([getattr(p, name) for p in parts])[:MOST] for name in ("rows", "targets", "features")
    )
    return Lists(rows, targets, features, parts[0].names)


def pool(samples: Sequence[Sample]) -> Ranker:
    """Fit one ranker for all pairs."""
    features = np.concatenate([s.lists.features for s in samples])
    right = np.concatenate([s.right for s in samples])
    return fit_ranker(samples[0].lists.names, features, right, penalty=PENALTY)


def calibrated(samples: Sequence[Sample]) -> Pooled:
    """Fit, and calibrate on each pair by the ranker of the others."""
    rankers = [pool([o for o in samples if o is not s] or [s]) for s in samples]
    logits = [r.logits(s.lists.features) for r, s in zip(rankers, samples, strict=True)]
    t = temperature(np.concatenate(logits), np.concatenate([s.right for s in samples]))
    final = replace(pool(samples), temperature=t)
    linked, right, alone = [], [], []
    for ranker, s in zip(rankers, samples, strict=True):
        tempered = replace(ranker, temperature=t)
        x, top = verified(final, tempered, s.lists)
        linked.append(x)
        right.append(top == s.right)
        alone.append(verified(final, tempered, s.without)[0])
    return Pooled(final, fit_calibrated(names_of(final), linked, right, alone)[0])


def verified(final: Ranker, ranker: Ranker, lists: Lists) -> tuple[Float64Array, Int64Array]:
    """Return the features of the first candidates by `ranker`, standardised as by `final`, and their positions."""
    logits = ranker.logits(lists.features)
    won = compete(logits, lists.targets)
    return first_candidates(final, lists, logits, won), won[:, :-1].argmax(axis=1)


def _kept(folder: Path | None, language: str, mode: str) -> Sample:
    path = folder / f"{language}.{mode}.npz" if folder else None
    if path and path.exists():
        with np.load(path) as file:
            names = tuple(file["names"].tolist())
            lists, without = (
                Lists(file[f"{which}_rows"], file[f"{which}_targets"], file[f"{which}_features"], names)
                for which in ("linked", "alone")
            )
            return Sample(lists, file["right"], without)
    found = sample(language, mode)
    if path:
        arrays = {
            f"{which}_{part}": getattr(lists, part)
            for which, lists in (("linked", found.lists), ("alone", found.without))
            for part in ("rows", "targets", "features")
        }
        np.savez(path, names=found.lists.names, right=found.right, **arrays)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=Path, help="folder that keeps the lists between runs")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    options = parser.parse_args()
    path = ROOT / "linker" / "crosslingual" / "ranking" / "pooled.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for mode in options.modes:
        samples = [_kept(options.lists, language, mode) for language in options.languages]
        found[mode] = {"languages": list(options.languages), **to_json(calibrated(samples))}
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
