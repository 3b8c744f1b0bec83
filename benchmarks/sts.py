"""Sentence similarity on real data: the Cross-BERT-GRU, the bag of words and the cosine of the backbone.

`python -m benchmarks.sts --work FOLDER --train` trains the scorers that FOLDER lacks; without `--train`, they are
evaluated on the test splits → benchmarks/results/sts.json. Dev pairs are part of each train file; back-translation is
English → Spanish → English with Apertium (Debian's apertium-eng-spa). Everything runs on one thread.
"""

import collections
import functools
import itertools
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.support.common import kept, shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import mse, pearson, spearman
from linker.scoring.pairs.data import Pair, golds, read_pairs
from linker.scoring.pairs.sts.cross_config import PRESETS
from linker.scoring.pairs.sts.cross_training import augment
from linker.scoring.pairs.sts.frozen import FrozenScorer
from linker.scoring.pairs.sts.recipe import Recipe, fit, split_dev
from linker.scoring.pairs.sts.scorer import PairScorer, expected_value
from linker.scoring.pairs.sts.scorer_folder import is_saved, load, save
from linker.scoring.pairs.translate import CommandTranslator

Floats = npt.NDArray[np.float64]
RESOURCES = ("msrpar", "msrvid", "smteuroparl")
# Two of six layers frozen, bfloat16 and few epochs keep each training run within minutes on one thread.
CONFIG = replace(PRESETS["recommended"], lr=5e-5, frozen_layers=2, precision="bfloat16", patience=0)
PLAIN, AUGMENTED = "Cross-BERT-GRU", "Cross-BERT-GRU, back-translated"
CONFIGS = {
    PLAIN: replace(CONFIG, epochs=3),
    AUGMENTED: replace(CONFIG, epochs=2),  # fewer epochs, over up to twice the pairs
}
DEV = 0.15


def sts(name: str) -> list[Pair]:
    return read_pairs(shared_data() / "sts" / f"{name}.jsonl.gz")


def train_one(work: Path, resource: str, system: str, seed: int) -> None:
    """Train a scorer and save it with the cost of training."""
    folder = work / f"{resource}.{system}.{seed}"
    if is_saved(folder):
        return
    start = time.process_time()
    config = replace(CONFIGS[system], seed=seed)
    rest, dev = split_dev(sts(f"{resource}-train"), DEV, 0)
    if system == AUGMENTED:
        translator = CommandTranslator("apertium -u {source}-{target}")
        rest += augment(rest, translator, "eng", "spa")
    scorer, report = fit(Recipe(config), rest, dev, log)
    saved(scorer, folder, {"pairs": len(rest), "kept": report.kept, "dev": report.dev}, start)


def train_arabic(work: Path) -> None:
    """Train the frozen-feature variant on STSb in five languages; the epoch is chosen on English STS-2017.

    Its pairs come from the same corpus of captions as the Arabic pairs but do not overlap with them: the English
    sentence nearest to an Arabic one has a median cosine of .48.
    """
    folder = work / "arabic.0"
    if is_saved(folder):
        return
    start = time.process_time()
    pairs = [p for language in ("en", "de", "fr", "ru", "zh") for p in sts(f"stsb-{language}-train")]
    config = replace(PRESETS["frozen"], lr=1e-4, head_lr=1e-4, epochs=3)
    scorer, report = fit(Recipe(config, "usem3"), pairs, sts("sts17-en-en"), log)
    saved(scorer, folder, {"pairs": len(pairs), "kept": report.kept, "dev": report.dev}, start)


def log(line: str) -> None:
    print(line, flush=True)


def saved(scorer: PairScorer, folder: Path, about: dict[str, Any], start: float) -> None:
    """Write a model, and a record of its training next to its weights."""
    save(scorer, folder)
    about["cpu_s"] = round(time.process_time() - start, 1)
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    log(f"{folder.name}: {about}")


def report(work: Path) -> dict[str, Any]:
    """Evaluate all trained models on the test parts."""
    return {
        "configs": {system: asdict(config) for system, config in CONFIGS.items()},
        "resources": {resource: judge(work, resource) for resource in RESOURCES},
        "arabic": judge_arabic(work),
    }


def judge(work: Path, resource: str) -> dict[str, Any]:
    """Return figures for all systems on a resource's test part; for trained systems the mean over their seeds."""
    pairs = sts(f"{resource}-test")
    bag = bag_of_words(pairs)
    cosine = cosines(work, "minilm", f"{resource}-test", pairs)
    rows = {"bag of words": row([bag], pairs), "MiniLM cosine": row([cosine], pairs)}
    for system in CONFIGS:
        folders = [f for f in sorted(work.glob(f"{resource}.{system}.[0-9]*")) if is_saved(f)]
        found = [expected_value(predictions(folder, pairs)) for folder in folders]
        if found:
            seeds = [spearman(p, golds(pairs)) for p in found]
            rows[system] = row(found, pairs) | {
                "seeds": seeds,
                "deviation": float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None,
                "lead over the bag": lead(found, bag, pairs),
                "lead over the cosine": lead(found, cosine, pairs),
                "training": [about(folder) for folder in folders],
            }
    return rows


def predictions(folder: Path, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
    """Score the test pairs once with the folder's model; the scores are cached next to it."""
    scores = kept(folder / "test.npy", lambda: load(folder).probabilities([p.texts for p in pairs]))
    return np.asarray(scores, np.float32)


def about(folder: Path) -> Any:
    return json.loads((folder / "about.json").read_text())


def judge_arabic(work: Path) -> dict[str, Any]:
    pairs = sts("sts17-ar-ar")
    cosine = cosines(work, "usem3", "sts17-ar-ar", pairs)
    rows = {"bag of words": row([bag_of_words(pairs)], pairs), "usem3 cosine": row([cosine], pairs)}
    folder = work / "arabic.0"
    if is_saved(folder):
        found = [expected_value(predictions(folder, pairs))]
        rows["frozen features of usem3"] = row(found, pairs) | {
            "lead over the cosine": lead(found, cosine, pairs, pearson),
            "training": about(folder),
        }
    return rows


def row(predicted: Sequence[Floats], pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures for predictions, means over seeds, with 95 % bootstrap intervals over the pairs."""
    gold = np.array(golds(pairs))

    def mean(measure: Callable[..., float], rows: npt.NDArray[np.int64]) -> float:
        return float(np.mean([measure(p[rows], gold[rows]) for p in predicted]))

    whole = np.arange(len(gold))
    found: dict[str, Any] = {"mse": float(np.mean([mse(p, gold / 5) for p in predicted]))}
    for name, measure in (("spearman", spearman), ("pearson", pearson)):
        figure = functools.partial(mean, measure)
        found[name] = [figure(whole), *interval(figure, len(gold))]
    return found


def lead(
    predicted: Sequence[Floats],
    other: Floats,
    pairs: Sequence[Pair],
    measure: Callable[..., float] = spearman,
) -> list[float]:
    """Return the predictions' lead over others, the mean over seeds, with its interval over resampled pairs."""
    gold = np.array(golds(pairs))

    def difference(rows: npt.NDArray[np.int64]) -> float:
        mean = np.mean([measure(p[rows], gold[rows]) for p in predicted])
        return float(mean - measure(other[rows], gold[rows]))

    return [difference(np.arange(len(gold))), *interval(difference, len(gold))]


def interval(figure: Callable[[npt.NDArray[np.int64]], float], size: int, samples: int = 1000) -> list[float]:
    rng = np.random.default_rng(0)
    found = [figure(rng.integers(0, size, size)) for _ in range(samples)]
    return [float(q) for q in np.nanpercentile(found, [2.5, 97.5])]


def bag_of_words(pairs: Sequence[Pair]) -> Floats:
    """Return the cosines of the sentences' word counts."""
    found = []
    for pair in pairs:
        a, b = (collections.Counter(re.findall(r"\w+", text.lower())) for text in pair.texts)
        norm = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
        found.append(sum(n * b[word] for word, n in a.items()) / norm if norm else 0.0)
    return np.array(found)


def cosines(work: Path, encoder: str, name: str, pairs: Sequence[Pair]) -> Floats:
    """Return the encoder's cosines; they are computed once."""

    def made() -> Any:
        return FrozenScorer(encoder, load_encoder(encoder)).cosines([p.texts for p in pairs])

    return np.asarray(kept(work / f"{name}.{encoder}.npy", made))


@benchmark(
    seed=0,
    work=KEPT,
    train=(False, "train the scorers that the folder lacks, and record nothing"),
    resource=([*RESOURCES], "train on these alone"),
    system=([PLAIN, AUGMENTED], "train these"),
    seeds=([0], "train with these seeds"),
)
def measured(options: Arguments) -> Results | None:
    """Train, or evaluate what was trained."""
    torch.set_num_threads(1)
    if not options.train:
        return report(options.work)
    for resource, system in itertools.product(options.resource, options.system):
        for seed in options.seeds:
            train_one(options.work, resource, system, seed)
    train_arabic(options.work)
    return None
