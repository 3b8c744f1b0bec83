"""Plots of a training run: their data comes from metrics.jsonl, and the caption about α is true."""

import builtins
import importlib.util
import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.lines import Line2D

from indexes.interface import Document, MissingExtraError
from linker.base.errors import InputError
from linker.training.document_map import draw_documents, draw_posts
from linker.training.plots import alpha_caption, draw_alpha, plot_metrics, read_metrics
from tests.helpers import HashEncoder, linker, write_corpus
from tests.training.tiny import encoder

RING, RELAY = "layers.0.ring", "layers.0.relay"
SVG = "{http://www.w3.org/2000/svg}"


def write(
    folder: Path,
    alphas: Sequence[Mapping[str, Sequence[float]]],
    *,
    sparsity: bool = True,
    dev: Sequence[float] = (0.2, 0.5, 0.5),
) -> Path:
    """Write metrics of a training run with two steps per epoch, judged after 0, 1, 2 … epochs; return its folder."""
    lines: list[dict[str, Any]] = []
    for epoch, alpha in enumerate(alphas):
        lines += [{"step": 2 * epoch + s, "epoch": epoch + s / 2, "loss": 1 / (epoch + s)} for s in (1, 2)]
        judged = {"step": 2 * epoch, "epoch": epoch, **({"dev_mrr": dev[epoch]} if dev else {})}
        shares = {"sparsity": {name: [0.5] * len(a) for name, a in alpha.items()}} if sparsity else {}
        lines.append({**judged, **({"alpha": alpha} if alpha else {}), **(shares if alpha else {})})
    path = folder / "training/metrics.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 9, "ep')
    return folder


def points(line: Line2D) -> npt.NDArray[np.float64]:
    return np.asarray(line.get_xydata(), dtype=np.float64)


@pytest.mark.parametrize(
    ("relay", "caption"),
    [
        ([[1.5, 1.5]] * 3, "No α moved: max |Δα| = 0"),
        (
            [[1.5, 1.5], [1.5, 1.502], [1.499, 1.5]],
            "max |Δα| = 0.0020 (layers.0.relay, head 2, epoch 1); 0 of 4 heads end 0.01 or more from the start",
        ),
        (
            [[1.5, 1.5], [1.3, 1.5], [1.45, 1.52]],
            "max |Δα| = 0.2000 (layers.0.relay, head 1, epoch 1); 2 of 4 heads end 0.01 or more from the start",
        ),
    ],
)
def test_the_caption_says_whether_alpha_moved(tmp_path: Path, relay: list[list[float]], caption: str) -> None:
    model = write(tmp_path, [{RING: [1.5, 1.5], RELAY: a} for a in relay])
    assert alpha_caption(read_metrics(model)) == caption
    drawn = plot_metrics(model)
    assert [path.name for path in drawn] == ["loss.svg", "dev.svg", "alpha.svg", "sparsity.svg"]
    assert {path.parent for path in drawn} == {tmp_path / "training"}
    assert caption.replace("'", "") in (tmp_path / "training/alpha.svg").read_text(encoding="utf-8")


def test_every_head_and_its_start_are_drawn(tmp_path: Path) -> None:
    relay = [[1.5, 1.2], [1.6, 1.2], [1.7, 1.3]]
    figure = draw_alpha(read_metrics(write(tmp_path, [{RING: [1.4, 1.4], RELAY: a} for a in relay])))
    assert figure is not None
    assert [axes.get_title() for axes in figure.axes] == [RING, RELAY]
    lines = figure.axes[1].get_lines()
    solid = [line for line in lines if line.get_linestyle() == "-"]
    expected = [[[0, 1.5], [1, 1.6], [2, 1.7]], [[0, 1.2], [1, 1.2], [2, 1.3]]]
    assert [points(line).tolist() for line in solid] == expected
    dashed = [float(points(line)[0, 1]) for line in lines if line.get_linestyle() == "--"]
    assert sorted(dashed) == [1.2, 1.5]


def test_what_was_not_logged_is_not_drawn(tmp_path: Path) -> None:
    model = write(tmp_path, [{}, {}], dev=())
    assert [path.name for path in plot_metrics(model, tmp_path / "new/place")] == ["loss.svg"]
    assert (tmp_path / "new/place/loss.svg").is_file()


def test_no_metrics(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"metrics\.jsonl: No such file.*linker train"):
        plot_metrics(tmp_path)
    (tmp_path / "training").mkdir()
    (tmp_path / "training/metrics.jsonl").write_text("\n[]\n7\n{")
    with pytest.raises(InputError, match="has not been trained yet"):
        plot_metrics(tmp_path)


def documents(count: int) -> list[Document]:
    hard = 'said <b> & "so" \x00 \ud800'
    return [Document(f"d{i}", f"group{i % 2} " * 6 + f"word{i} {hard}") for i in range(count)]


def test_a_map_carries_every_text(tmp_path: Path) -> None:
    paths = [draw_documents(HashEncoder(), documents(20), tmp_path / f"{i}/map.svg", most=12) for i in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    groups = ET.fromstring(paths[0].read_text(encoding="utf-8")).findall(f"{SVG}g")
    titles = [point.findtext(f"{SVG}title") or "" for point in groups]
    assert len(titles) == 12
    assert titles[0] == "group0 " * 6 + 'word0 said <b> & "so"'
    assert titles[-1].split()[-5] == "word19"
    labels = [label for point in groups if (label := point.findtext(f"{SVG}text"))]
    assert labels
    assert all(label in ("group0 group0 group0…", "group1 group1 group1…") for label in labels)


def test_a_map_of_too_few(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs at least 5 documents; there are 4"):
        draw_documents(HashEncoder(), documents(4), tmp_path / "map.svg")


def posts(articles: int, each: int = 3) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return posts of one word from their article, and their links; article a0 has the most posts."""
    sizes = {f"a{a}": each + articles - a for a in range(articles)}
    links = [(f"{article}-{p}", article) for article, size in sizes.items() for p in range(size)]
    return {post: f"{article} " * 5 + f"<{post}>" for post, article in links}, links


def test_posts_have_the_colour_of_their_article(tmp_path: Path) -> None:
    texts, links = posts(12, 1)
    links += [("gone", "a11"), ("a0-0", "a1"), ("a0-1", "a0")]  # no text; two articles; duplicate
    titles = {f"a{i}": f"<Title {i}>" for i in range(1, 12)}
    paths = [draw_posts(HashEncoder(), texts, links, tmp_path / f"{i}/posts.svg", titles) for i in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    root = ET.fromstring(paths[0].read_text(encoding="utf-8"))
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "legend"]
    assert names == ["a0", *(f"<Title {i}>" for i in range(1, 10))]  # ten colours, ten articles
    colour = dict(zip(names, [r.get("fill") for r in root.iter(f"{SVG}rect")][1:], strict=True))
    drawn = {
        point.findtext(f"{SVG}title"): circle.get("fill")
        for point in root.findall(f"{SVG}g")
        if (circle := point.find(f"{SVG}circle")) is not None
    }
    shown = {
        post: article
        for post, article in dict(reversed(links)).items()
        if int(article[1:]) < 10 and post in texts
    }
    assert drawn == {texts[post]: colour[titles.get(article, article)] for post, article in shown.items()}


def test_a_map_of_posts_needs_articles_with_several(tmp_path: Path) -> None:
    texts = {f"p{i}": f"text {i}" for i in range(6)}
    with pytest.raises(InputError, match="at least 5 posts of articles with two posts or more; there are 2"):
        draw_posts(HashEncoder(), texts, [("p0", "a"), ("p1", "a"), ("p2", "b")], tmp_path / "posts.svg")


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, spec = builtins.__import__, importlib.util.find_spec
    missing = ("matplotlib", "sklearn")

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(name=name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else spec(name))
    with pytest.raises(MissingExtraError, match=r"\[plot\]'"):
        plot_metrics(write(tmp_path, [{RING: [1.5]}]))
    with pytest.raises(MissingExtraError, match=r"\[plot\]'"):
        draw_documents(HashEncoder(), documents(6), tmp_path / "map.svg")


def test_the_command(tmp_path: Path) -> None:
    from linker.encoders import folder

    folder.save(encoder(), tmp_path / "model")
    write(tmp_path / "model", [{RING: [1.5]}, {RING: [1.6]}])
    corpus = write_corpus(tmp_path / "corpus.jsonl", 8)
    plain = linker("plot", tmp_path / "model").stdout.splitlines()
    assert [Path(line).name for line in plain] == ["loss.svg", "dev.svg", "alpha.svg", "sparsity.svg"]
    out = tmp_path / "figures"
    done = linker("plot", tmp_path / "model", "--documents", corpus, "--out", out).stdout.splitlines()
    assert done[-1] == str(out / "documents.svg")
    assert len(list(out.iterdir())) == 5
    texts, links = posts(2)
    queries, qrels = tmp_path / "posts.tsv", tmp_path / "links.txt"
    queries.write_text("".join(f"{post}\t{text}\n" for post, text in texts.items()), encoding="utf-8")
    qrels.write_text("".join(f"{post} 0 {article} 1\n" for post, article in links), encoding="utf-8")
    with_posts = ("--queries", queries, "--qrels", qrels, "--out", out)
    done = linker("plot", tmp_path / "model", *with_posts).stdout.splitlines()
    assert done[-1] == str(out / "posts.svg")
    refused = linker("plot", tmp_path / "model", "--qrels", qrels, check=1).stderr
    assert "a map of posts needs both their texts and their links: add --queries to --qrels" in refused
    assert "metrics.jsonl" in linker("plot", tmp_path, check=1).stderr


def test_metrics_that_are_no_numbers_or_no_text_are_refused_or_passed_over(tmp_path: Path) -> None:
    model = write(tmp_path, [{RING: [1.5, 1.5], RELAY: [1.5, 1.5]}])
    path = tmp_path / "training/metrics.jsonl"
    path.write_bytes(path.read_bytes() + b'{"epoch": 9, "x": "\xff')
    assert read_metrics(model).series("alpha")[0] == [0.0]
    for alpha in ('{"a": "x"}', "1.5"):
        path.write_text(f'{{"epoch": 1, "alpha": {alpha}}}\n', encoding="utf-8")
        with pytest.raises(InputError, match=r"metrics\.jsonl: the alpha of an evaluation"):
            read_metrics(model).series("alpha")
