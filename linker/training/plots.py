"""Plots of a training run from its metrics.jsonl: loss, dev figures, and every head's α and share of exact zeros.

Needs the extra 'plot'. The same metrics give the same bytes under the same version of Matplotlib.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.files import open_input, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = Path("training/metrics.jsonl")
MOVED = 0.01  # a head has moved if its |Δα| is at least this
ROOM = 0.05  # minimum range of the α axis around the initial value, so that noise does not look like a move


@dataclass(frozen=True, slots=True)
class Metrics:
    """The lines of metrics.jsonl: steps, which have a loss, and evaluations."""

    steps: tuple[dict[str, Any], ...]
    judgements: tuple[dict[str, Any], ...]

    def series(self, key: str) -> tuple[list[float], dict[str, np.ndarray[Any, np.dtype[np.float64]]]]:
        """Return the epochs [t] at which `key` ("alpha", "sparsity") was logged, and its values by name.

        The values are float64 [t, h], for h heads. Raises InputError if the log does not map names to numbers.
        """
        lines = [line for line in self.judgements if line.get(key)]
        try:
            names = list(lines[0][key]) if lines else []
            values = {name: np.array([line[key][name] for line in lines], dtype=np.float64) for name in names}
            return [float(line["epoch"]) for line in lines], values
        except (TypeError, ValueError, LookupError, OverflowError) as e:
            raise InputError(
                f"{METRICS}: the {key} of an evaluation must map names to numbers: {e}"
            ) from None


def read_metrics(model: Path) -> Metrics:
    """Read a model folder's metrics; an incomplete last line is ignored. Raises InputError if there are none."""
    path = model / METRICS
    try:
        with open_input(path) as file:
            text = file.read().decode(errors="replace")
    except OSError as e:
        raise InputError(
            f"cannot read {path}: {e.strerror}; `linker train` writes it into the model's folder"
        ) from None
    lines = [line for raw in text.splitlines() if (line := _parsed(raw))]
    if not lines:
        raise InputError(f"{path} holds no figures: the model has not been trained yet")
    steps = tuple(line for line in lines if "loss" in line)
    return Metrics(steps, tuple(line for line in lines if "loss" not in line))


def plot_metrics(model: Path, out: Path | None = None) -> list[Path]:
    """Draw loss.svg, dev.svg, alpha.svg and sparsity.svg, if there are figures for them, and return their paths.

    `out` is a folder, by default the model's training/. Raises InputError if there are no metrics or they are
    damaged, MissingExtraError without Matplotlib.
    """
    metrics = read_metrics(model)
    out = out or model / METRICS.parent
    pictures: dict[str, Callable[[Metrics], Figure | None]] = {
        "loss": draw_loss,
        "dev": draw_dev,
        "alpha": draw_alpha,
        "sparsity": draw_sparsity,
    }
    paths = []
    with _style():
        for name, draw in pictures.items():
            figure = draw(metrics)
            if figure is not None:
                paths.append(_write(figure, out / f"{name}.svg"))
    return paths


def draw_loss(metrics: Metrics) -> Figure | None:
    """Draw the loss of every step and its moving mean over a fiftieth of the steps; None without steps."""
    if not metrics.steps:
        return None
    figure, axes = _figure(1)
    epochs, losses = ([float(line[key]) for line in metrics.steps] for key in ("epoch", "loss"))
    span = max(len(losses) // 50, 1)
    sums = np.cumsum([0.0, *losses])
    means = [(sums[i] - sums[max(i - span, 0)]) / min(i, span) for i in range(1, len(sums))]
    axes[0].plot(epochs, losses, color="0.8", linewidth=0.6)
    axes[0].plot(epochs, means, label=f"mean of {span} steps")
    axes[0].set(xlabel="epoch", ylabel="loss", ylim=(0, None))
    axes[0].legend()
    return figure


def draw_dev(metrics: Metrics) -> Figure | None:
    """Draw MRR and Success on dev, with a dot at the saved model; None without dev figures."""
    lines = [line for line in metrics.judgements if "dev_mrr" in line]
    if not lines:
        return None
    figure, axes = _figure(1)
    epochs = [line["epoch"] for line in lines]
    for key, label in (("dev_mrr", "MRR"), ("dev_success_1", "Success@1"), ("dev_success_5", "Success@5")):
        if all(key in line for line in lines):
            axes[0].plot(epochs, [line[key] for line in lines], label=label)
    best = max(range(len(lines)), key=lambda i: lines[i]["dev_mrr"])
    axes[0].plot(epochs[best], lines[best]["dev_mrr"], "o", color="black", label="kept")
    axes[0].set(xlabel="epoch", ylabel="on dev")
    axes[0].legend()
    return figure


def draw_alpha(metrics: Metrics) -> Figure | None:
    """Draw the α of every head and its start as a dashed line; None for a model without α."""
    epochs, values = metrics.series("alpha")
    if not values:
        return None
    figure, axes = _figure(len(values))
    everything = np.concatenate([v.ravel() for v in values.values()])
    starts = np.concatenate([v[0] for v in values.values()])
    limits = min(everything.min(), starts.min() - ROOM), max(everything.max(), starts.max() + ROOM)
    for panel, (name, alphas) in zip(axes, values.items(), strict=True):
        _heads(panel, epochs, alphas)
        for start in np.unique(alphas[0]):
            panel.axhline(start, color="black", linestyle="--", linewidth=0.8)
        panel.set(title=name, xlabel="epoch", ylabel="α", ylim=limits)
    figure.supxlabel(alpha_caption(metrics), fontsize="small")
    return figure


def draw_sparsity(metrics: Metrics) -> Figure | None:
    """Draw each head's share of weights that are exactly zero; None for a model without α."""
    epochs, values = metrics.series("sparsity")
    if not values:
        return None
    figure, axes = _figure(len(values))
    for panel, (name, shares) in zip(axes, values.items(), strict=True):
        _heads(panel, epochs, shares)
        panel.set(title=name, xlabel="epoch", ylabel="share of exact zeros", ylim=(-0.02, 1.02))
    return figure


def alpha_caption(metrics: Metrics) -> str:
    """Return a sentence on the largest move of an α from its start, and on how many heads have moved."""
    epochs, values = metrics.series("alpha")
    if not values:
        return "there is no α"
    moves = {name: np.abs(alphas - alphas[0]) for name, alphas in values.items()}
    name = max(moves, key=lambda n: float(moves[n].max()))
    when, head = np.unravel_index(moves[name].argmax(), moves[name].shape)
    most = float(moves[name].max())
    if most == 0:
        return "No α moved: max |Δα| = 0"
    away = sum(int((m[-1] >= MOVED).sum()) for m in moves.values())
    heads = sum(m.shape[1] for m in moves.values())
    where = f"{name}, head {head + 1}, epoch {epochs[when]:g}"
    return f"max |Δα| = {most:.4f} ({where}); {away} of {heads} heads end {MOVED} or more from the start"


def _heads(panel: Axes, epochs: Sequence[float], values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    for head, line in enumerate(values.T, start=1):
        panel.plot(epochs, line, color=f"C{(head - 1) % 10}", marker=".", label=f"head {head}")
    if values.shape[1] <= 10:
        panel.legend(fontsize="x-small", ncols=2)


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.4, 4.8 * panels), 4), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, panels)))


def _style() -> Any:
    with importing("plots of a training run (by matplotlib)", "plot"):
        import matplotlib as mpl
    return mpl.rc_context({"svg.hashsalt": "linker", "svg.fonttype": "none", "text.parse_math": False})


def _write(figure: Figure, path: Path) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    return path


def _parsed(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) and "epoch" in values else {}
