"""Draw the plots of the documentation, in light and dark: `python -m benchmarks.report.pictures`; look at each one.

Two come from benchmarks/results. The explanation comes from a star trained on the demo's news (half a minute), the
curves from one trained on `tweets2claims` by `linker train ast`, and the map shows tweets of that set.
"""

import io
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from benchmarks.support.common import ROOT, parse_options, recorded, records, shared_data
from linker.corpora import read_queries
from linker.demo.training import train_demo_encoder
from linker.encoders.loading import load_encoder
from linker.scoring.pairs.explaining import explain
from linker.training.document_map import tsne
from linker.training.plots import draw_alpha, draw_dev, read_metrics

OUT = ROOT / "docs" / "images"
LARGEST = 60 * 1024  # maximum number of bytes per picture
SCHEMES = {"": "#ffffff", "-dark": "#1e2129"}  # suffix of the file → background colour
POST = "Firefighters are gearing up for a wind change that may bring further property losses today."
ARTICLE = "Fires are still burning across the state; crews hope that lighter winds will help to save homes."
CLAIMS = (  # for the map of tweets: claims that many tweets repeat
    "cheesecake-factory-closing-rumor", "directv-nfl-refunds", "taco-bell-mexican-pizza", "trump-iran-tweets-obama",
    "armed-trump-fans-biden-bus", "donald-trump-global-warming-hoax", "bernie-sanders-won-nevada",
)  # fmt: skip

Draw = Callable[[], Figure]


def figure(width: float = 6.4, height: float = 3.0) -> tuple[Figure, Any]:
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots()


def draw_hybrid() -> Figure:
    """MRR of each way to search, with its 95 % interval, from the retrieval benchmark."""
    rows = recorded("retrieval")["rows"]
    picture, axes = figure(6.4, 2.2)
    for place, (name, row) in enumerate(reversed(rows.items())):
        mrr, low, high = row["recip_rank"]
        colour = "C0" if name.startswith("hybrid") else "0.55"
        axes.errorbar(mrr, place, xerr=[[mrr - low], [high - mrr]], fmt="o", color=colour, capsize=3)
    axes.set(yticks=range(len(rows)), yticklabels=list(reversed(rows)), xlabel="MRR with its 95 % interval")
    axes.grid(axis="x", alpha=0.3)
    axes.margins(y=0.15)
    return picture


def draw_recall() -> Figure:
    """Recall of the top ten against time per query, for each approximate index over a million passages."""
    drawn, axes = figure()
    for name, row in recorded("ann").items():
        kind, _, corpus = name.partition(", ")
        if corpus == "1,000,000 real":
            points = sorted((p["ms"], p["recall"]) for p in row["points"] if p["recall"] >= 0.8)
            best = [p for i, p in enumerate(points) if all(p[1] > q[1] for q in points[:i])]
            ours = kind not in ("hnswlib", "usearch")
            axes.plot(*zip(*best, strict=True), "o-" if ours else "o--", label=kind, markersize=3)
    axes.set(xscale="log", xlabel="CPU-milliseconds per query", ylabel="recall of the top ten")
    axes.grid(alpha=0.3)
    axes.legend()
    return drawn


def draw_explained(model: Path) -> Figure:
    """The effect of each token on the cosine of two texts: the drop when it is left out."""
    link = explain(load_encoder(model), POST, ARTICLE)
    drawn = Figure(figsize=(6.4, 4.2), layout="constrained")
    for axes, text, name in zip(drawn.subplots(1, 2), link.texts, ("post", "article"), strict=True):
        effects = -text.changes
        axes.barh(range(len(effects)), effects, color=["C0" if e > 0 else "C3" for e in effects])
        axes.set(yticks=range(len(effects)), yticklabels=text.tokens, title=name)
        axes.tick_params(axis="y", labelsize="x-small")
        axes.invert_yaxis()
    drawn.supxlabel(f"what each token adds to the cosine, {link.cosine:.2f}", fontsize="small")
    return drawn


def draw_tweets(data: Path) -> Figure:
    """t-SNE of the tweets about the claims that most tweets repeat, a colour per claim."""
    folder, claims = data / "tweets2claims", [f"vclaim-sno-{claim}" for claim in CLAIMS]
    claim_of = {q: c for path in sorted((folder / "qrels").glob("*.tsv")) for q, c in _pairs(path)}
    texts = {q.id: q.text for q in read_queries(folder / "queries.jsonl.gz") if claim_of.get(q.id) in claims}
    titles = {d["_id"]: d["title"] for d in records(folder / "corpus.jsonl.gz") if d["_id"] in claims}
    places = dict(zip(texts, tsne(load_encoder("minilm").encode(list(texts.values()))), strict=True))
    picture, axes = figure(7.2, 3.8)
    for number, claim in enumerate(claims):
        points = np.array([place for id_, place in places.items() if claim_of[id_] == claim])
        axes.scatter(*points.T, color=f"C{number}", label=textwrap.fill(titles[claim], 34), s=30)
    axes.set(xticks=[], yticks=[])
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
    return picture


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, claim, _ = line.split("\t")
        yield query, claim


def pictures(model: Path, trained: Path | None, data: Path) -> Iterator[tuple[str, Draw]]:
    """Yield the name of each picture and its drawing function."""
    yield "hybrid", draw_hybrid
    yield "recall", draw_recall
    yield "explain", lambda: draw_explained(model)
    if trained:
        metrics = read_metrics(trained)
        yield "alpha", lambda: _there(draw_alpha(metrics))
        yield "dev", lambda: _there(draw_dev(metrics))
    if data.is_dir():
        yield "tweets", lambda: draw_tweets(data)


def _there(drawn: Figure | None) -> Figure:
    assert drawn is not None
    return drawn


def save(name: str, draw: Draw) -> None:
    """Draw a picture in both schemes, in as few colours as keep it small."""
    for suffix, background in SCHEMES.items():
        style = "dark_background" if suffix else "default"
        with (
            mpl.style.context(style),
            mpl.rc_context({"figure.facecolor": background, "axes.facecolor": background}),
        ):
            drawn = draw()
            for line in drawn.findobj(Line2D) if suffix else ():
                line.set_color("white" if line.get_color() == "black" else line.get_color())
            buffer = io.BytesIO()
            drawn.savefig(buffer, dpi=130, facecolor=background)
        picture = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
        path = OUT / f"plot-{name}{suffix}.png"
        picture.save(path, "PNG", optimize=True)
        assert path.stat().st_size <= LARGEST, path
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


def main() -> None:
    given = parse_options(
        __doc__,
        model=(Path | None, "a folder that train_demo_encoder wrote before"),
        trained=(Path | None, "a folder that `linker train ast` wrote, for the curves"),
        data=shared_data(),
        only=(str | None, "the name of one picture"),
    )
    with tempfile.TemporaryDirectory() as scratch:
        model = given.model or train_demo_encoder(Path(scratch) / "star")
        for name, draw in pictures(model, given.trained, given.data):
            if given.only in (None, name):
                save(name, draw)


if __name__ == "__main__":
    main()
