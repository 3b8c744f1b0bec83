"""How time and memory of a training step grow with the length of texts: the star beside a Transformer layer (figure 1).

`python -m benchmarks.star_length` takes a forward and a backward pass over two texts, each in a process of its own, on
one thread. The Transformer layer has the star's dimensions and heads. Attention over n tokens takes n² weights there,
n · (2c + 2) in the ring and n + 1 in the relay of the star.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.support.common import in_child, record
from linker.encoders.configs import PRESETS
from linker.encoders.star import StarTransformer

LENGTHS = (256, 512, 1024, 2048, 4096)
TEXTS, WORDS = 2, 1000
CONFIG = PRESETS["paper"]


class _Layer(nn.Module):
    """A Transformer layer over word vectors, and the mean of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, CONFIG.dim)
        self.layer = nn.TransformerEncoderLayer(
            CONFIG.dim, CONFIG.heads, 4 * CONFIG.dim, dropout=0.0, batch_first=True
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.layer(self.embedding(ids))
        return states.mean(1)


def step(name: str, length: int) -> None:
    """Take a forward and a backward pass of a fresh model over random tokens."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = StarTransformer(CONFIG, WORDS) if name == "star" else _Layer()
    ids = torch.randint(1, WORDS, (TEXTS, length))
    model(ids, torch.ones_like(ids, dtype=torch.bool)).square().sum().backward()


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[dict[str, Any]] = []
    for name in ("star", "Transformer layer"):
        for length in LENGTHS:
            cost = in_child(step, (name, length), warm=(name, 16))
            rows.append({"model": name, "tokens": length, "cpu_s": cost.cpu_s, "mib": cost.growth_mib})
            print(rows[-1], flush=True)
    record("star_length", {"rows": rows, "exponents": exponents(rows)}, seed=0)


def exponents(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by model how time and memory grow with the length n, as n to which power, over the two longest."""
    found = {}
    for name in dict.fromkeys(row["model"] for row in rows):
        short, long = [row for row in rows if row["model"] == name][-2:]
        ratio = math.log(long["tokens"] / short["tokens"])
        found[name] = {k: round(math.log(long[k] / short[k]) / ratio, 2) for k in ("cpu_s", "mib")}
    return found


if __name__ == "__main__":
    main()
