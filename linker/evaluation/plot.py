"""A plot of the differences between runs, topic by topic. Needs the extra 'plot' (matplotlib)."""

import io
from pathlib import Path

import numpy as np

from indexes.errors import MissingExtraError
from linker.base.errors import InputError
from linker.base.files import check_outputs, write_atomically
from linker.evaluation.comparison import Comparison


def check_plot(path: Path) -> None:
    """Raise InputError unless a plot can be written to `path`, before the runs are compared."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"cannot draw {path}: the name must end in .png or .svg")
    check_outputs({"`plot`": path}, ())


def plot_differences(comparison: Comparison, path: Path) -> None:
    """Draw each run's differences from the baseline by the first measure, with topics sorted by difference.

    The suffix of `path` selects PNG or SVG. Raises InputError for another suffix or a path that cannot be written,
    MissingExtraError without matplotlib.
    """
    check_plot(path)
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot of differences", "plot") from None
    measure = next(name for _, name in comparison.differences)
    runs = [run for run, name in comparison.differences if name == measure]
    with mpl.rc_context({"svg.hashsalt": "linker", "text.parse_math": False}):
        figure = Figure(figsize=(8, 0.5 + 2.2 * len(runs)), layout="constrained")
        for axes, run in zip(np.atleast_1d(figure.subplots(len(runs), sharey=True)), runs, strict=True):
            bars = np.sort(comparison.differences[run, measure])[::-1]
            axes.fill_between(np.arange(len(bars) + 1), [*bars, bars[-1]], step="post")
            axes.axhline(0, color="black", linewidth=0.8)
            axes.set(title=f"{run} − {comparison.baseline}", ylabel=measure, xlabel="topics, by difference")
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix[1:], metadata=metadata, dpi=150)
    write_atomically(path, picture.getvalue())
