"""How time and memory of a training step grow with the length of texts: the star against a Transformer layer.

`python -m benchmarks.star_length` runs a forward and a backward pass over two texts on one thread. The Transformer
layer has the star's dimensions and heads. Memory is what the forward pass keeps for the backward pass. A law a
· n^b is fitted to each, and `--plot FILE.svg` draws it over the measurements; the star's paper has no such figure.
`weights` reproduces its figure 1, weights of softmax and of sparsemax over 5 and 25 tokens, and its appendix A, the
expected sum of exponentials of scores uniform in [−1, 1].
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from benchmarks.report.figures import laws
from benchmarks.support.common import cpu_time, recorded
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.encoders.configs import PRESETS
from linker.encoders.entmax import entmax
from linker.encoders.star import StarTransformer

LENGTHS = (256, 512, 1024, 2048, 4096)
TEXTS, WORDS, REPEATS = 2, 1000, 2
SHOWN, DRAWS = (5, 25), 100_000  # tokens in the paper's figure 1, and sets of scores to average over
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


def step(model: nn.Module, ids: Tensor) -> int:
    """Run a forward and a backward pass over ids [texts, n]; return the bytes kept between the two."""
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(ids, torch.ones_like(ids, dtype=torch.bool)).square().sum()
    loss.backward()
    return sum(kept.values())


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Draw time and memory by length on logarithmic axes, with the law of each as a line; needs Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.5), layout="constrained")
    fitted = laws(rows)
    for axes, key, unit in zip(figure.subplots(1, 2), ("cpu_s", "mib"), ("CPU seconds", "MiB"), strict=True):
        for model in dict.fromkeys(row["model"] for row in rows):
            own = [row for row in rows if row["model"] == model]
            tokens, law = np.array([row["tokens"] for row in own]), fitted[model, key]
            (dots,) = axes.loglog(tokens, [row[key] for row in own], "o")
            axes.loglog(tokens, law.a * tokens**law.b, color=dots.get_color(), label=f"{model}: {law}")
        axes.set(xlabel="tokens", ylabel=unit)
        axes.set_xticks(tokens, [f"{n:,}" for n in tokens])
        axes.minorticks_off()
        axes.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.savefig(out)


def weights() -> list[dict[str, Any]]:
    """Return, by number of tokens, Σ eᶻ per token, and the largest weight and the zeros of two attentions."""
    rows = []
    for tokens in SHOWN:
        scores = torch.rand(DRAWS, tokens, dtype=torch.float64) * 2 - 1
        row: dict[str, Any] = {"tokens": tokens, "exp": round(float(scores.exp().mean()), 4)}
        for name, found in (("softmax", scores.softmax(1)), ("sparsemax", entmax(scores, 2.0))):
            row[name] = round(float(found.amax(1).mean()), 4)
            row[f"{name} zeros"] = round(float((found == 0).double().mean()), 4)
        rows.append(row)
    return rows


@benchmark(seed=0, plot=(Path | None, "draw what is recorded, and measure nothing"))
def measured(options: Arguments) -> Results | None:
    if options.plot:
        draw(recorded("star_length")["rows"], options.plot)
        return None
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name, model in (("star", StarTransformer(CONFIG, WORDS)), ("Transformer layer", _Layer())):
        for length in LENGTHS:
            ids = torch.randint(1, WORDS, (TEXTS, length))
            kept = step(model, ids)
            seconds = cpu_time(lambda m=model, x=ids: step(m, x), REPEATS)  # type: ignore[misc]
            rows.append(
                {"model": name, "tokens": length, "cpu_s": round(seconds, 4), "mib": round(kept / 2**20, 1)}
            )
            print(rows[-1], flush=True)
    return {"rows": rows, "weights": weights()}
