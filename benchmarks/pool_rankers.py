"""Fit the rankers that `auto` starts from if links are few or missing: linker/crosslingual/ranking/pooled.json.

Training pages only, variant `hard`, at most 300 pages per pair; the file names each ranker's languages. Calibrated
by leaving one pair out. `--modes` fits only the named rankers again; the others stay.

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
from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.lexicon.dictionaries import read_dictionary
from linker.crosslingual.pages.pages import read_pages
from linker.crosslingual.ranking.calibration import compete, fit_platt, temperature
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.learning import describe, gold_of, out_of_fold
from linker.crosslingual.ranking.pooled import Pooled, to_json
from linker.crosslingual.ranking.ranker import Ranker, fit_ranker
from linker.crosslingual.task import NO_LINKS, read_links

LANGUAGES = ("de", "fr", "ru", "tr", "zh")
MODES = ("both", "links", "dictionary")
MOST = 300
PENALTY = 30.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Training lists of one language pair in one mode."""

    names: tuple[str, ...]
    features: Float32Array
    right: Int64Array
    targets: Int64Array


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
        lists = describe(
            evidence, evidence.learn(NO_LINKS), links[:, 0], others, NO_LINKS[:, 1], evidence.size
        )
        return Sample(lists.names, lists.features, lists.right(gold_of(links)), lists.targets)
    folds = out_of_fold(evidence, links, others)
    parts = [(f.lists.features, f.right, f.lists.targets) for f in folds]
    features, right, targets = (np.concatenate([p[i] for p in parts]) for i in range(3))
    return Sample(folds[0].lists.names, features, right, targets)


def pool(samples: Sequence[Sample]) -> Ranker:
    """Fit one ranker for all pairs."""
    features = np.concatenate([s.features[:MOST] for s in samples])
    right = np.concatenate([s.right[:MOST] for s in samples])
    return fit_ranker(samples[0].names, features, right, penalty=PENALTY)


def calibrated(samples: Sequence[Sample]) -> Pooled:
    """Fit, and calibrate on each pair by the ranker of the others."""
    logits = [pool([o for o in samples if o is not s] or [s]).logits(s.features[:MOST]) for s in samples]
    t = temperature(np.concatenate(logits), np.concatenate([s.right[:MOST] for s in samples]))
    won = [compete(x / t, s.targets[:MOST]) for x, s in zip(logits, samples, strict=True)]
    top = np.concatenate([w[:, :-1].argmax(axis=1) for w in won])
    confidence = np.concatenate([w[:, :-1].max(axis=1) for w in won])
    platt = fit_platt(confidence, top == np.concatenate([s.right[:MOST] for s in samples]))
    return Pooled(replace(pool(samples), temperature=t), platt)


def _kept(folder: Path | None, language: str, mode: str) -> Sample:
    path = folder / f"{language}.{mode}.npz" if folder else None
    if path and path.exists():
        with np.load(path) as file:
            return Sample(tuple(file["names"].tolist()), file["features"], file["right"], file["targets"])
    found = sample(language, mode)
    if path:
        np.savez(path, names=found.names, features=found.features, right=found.right, targets=found.targets)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=Path, help="folder that keeps the lists between runs")
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    options = parser.parse_args()
    path = ROOT / "linker" / "crosslingual" / "pooled.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for mode in options.modes:
        samples = [_kept(options.lists, language, mode) for language in options.languages]
        found[mode] = {"languages": list(options.languages), **to_json(calibrated(samples))}
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
