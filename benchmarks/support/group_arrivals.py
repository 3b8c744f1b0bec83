"""Documents that arrive in batches: what their groups cost, and how far they differ from grouping all of them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import group_data, rank_data
from benchmarks.support.common import fresh, in_child
from benchmarks.support.group_data import Grouped, lead, measured
from indexes.dtypes import Int64Array
from indexes.interface import Document
from linker.cli.commands.grouping import group
from linker.crosslingual.regrouping import regroup
from linker.crosslingual.sides import Side

BATCHES, COMPARED = 20, 5  # batches per corpus; after how many of them all documents are also grouped
SIZES = {10_000: 3, 100_000: 1}  # posts, and updates of each kind
NEW = (1, 100, 1000)  # new posts per update
FOLLOWED = {1: 300, 10: 30, 100: 5}  # posts that are added at once in memory (`--follow`), and how often
WORDS = range(8, 51)  # words of a sentence that is a post
EACH = 4  # one sentence of an article in this many is a post


def drift(corpus: Grouped) -> dict[str, Any]:
    """Return how the groups of documents arriving in random order differ from those of all documents.

    `mean` and `least`: B-cubed F1 between the two, every few batches. `queries`: per document, over all batches.
    """
    order = np.random.default_rng(0).permutation(len(corpus.documents))
    f1, queries, arriving, full = list[float](), 0, order[:0], order[:0]
    with tempfile.TemporaryDirectory() as folder:
        ends = np.linspace(0, len(order), BATCHES + 1).astype(int)[1:].tolist()
        for number, end in enumerate(ends, start=1):
            some = dataclasses.replace(corpus, documents=[corpus.documents[i] for i in order[:end].tolist()])
            arriving, asked = _labels(some, Path(folder))
            queries += asked
            if number % COMPARED == 0:
                full, _ = _labels(some, None)
                f1.append(measured(arriving, full)["b3_f1"])
    row: dict[str, Any] = {
        "documents": len(order), "mean": round(float(np.mean(f1)), 4), "least": min(f1),
        "queries": round(queries / len(order), 2),
    }  # fmt: skip
    if not corpus.coarse:
        gold = corpus.gold[order]
        row |= {
            "arriving": measured(arriving, gold)["b3_f1"], "together": measured(full, gold)["b3_f1"],
            "lead": lead(arriving, full, gold),
        }  # fmt: skip
    return row


def _labels(corpus: Grouped, folder: Path | None) -> tuple[Int64Array, int]:
    side = Side((), {d.id: d for d in corpus.documents}, "en")
    groups = regroup(side, next_to=folder and folder / "groups").groups
    return np.array([member.group for member in groups.members]), int(groups.metadata["queries"])


def posts() -> list[str]:
    """Return different short texts in random order: tweets, claims, statements, and sentences of articles."""
    texts = [d.full_text for d in group_data.tweets(claims=True).documents]
    texts += [q.text for part in rank_data.links("statements2articles").values() for q in part.queries]
    for article in group_data.articles():
        sentences = re.split(r"(?<=[.!?])\s+", article.text)
        texts += [s for s in sentences if len(s.split()) in WORDS][::EACH]
    texts = list(dict.fromkeys(texts))
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts)).tolist()]


def cost(size: int, work: Path) -> dict[str, float]:
    """Return CPU time and memory of the first grouping of posts, and CPU time per new post, by posts per update."""
    lines = [json.dumps({"id": f"p{i}", "text": text}) + "\n" for i, text in enumerate(posts())]
    folder, updates = work / f"arriving-{size}", SIZES[size]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    first = in_child(_updates, (folder, lines, [size]))
    row: dict[str, float] = {"cpu_s": first.cpu_s, "peak_mib": first.peak_mib}
    for new in NEW:
        ends = [size + new * (i + 1) for i in range(updates)]
        spent = in_child(_updates, (folder, lines, ends))
        row[f"ms_{new}"] = round(1000 * spent.cpu_s / updates / new, 1)
        size = ends[-1]
    return row


def following(work: Path) -> dict[str, dict[str, float]]:
    """Return CPU-ms per post that is added in memory, by how many posts are added at once."""
    return fresh(_followed, min(SIZES))


def _followed(size: int) -> dict[str, dict[str, float]]:
    documents = [Document(f"p{i}", text) for i, text in enumerate(posts())]
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        side = Side((), {d.id: d for d in documents[:size]}, "en")
        groups, _, arriving = regroup(side, next_to=Path(folder) / "groups", stays=True)
    assert arriving is not None
    arriving.start(groups)
    for new, times in FOLLOWED.items():
        spent = []
        for _ in range(times):
            began = time.process_time()
            arriving.add(documents[size : size + new])
            spent.append(1000 * (time.process_time() - began) / new)
            size += new
        rows[str(new)] = {
            "mean": round(float(np.mean(spent)), 1), "median": round(float(np.median(spent)), 1),
            "p95": round(float(np.percentile(spent, 95)), 1), "most": round(max(spent), 1),
        }  # fmt: skip
    return rows


def _updates(folder: Path, lines: list[str], ends: list[int]) -> None:
    for end in ends:
        path = folder / "posts.jsonl"
        path.write_text("".join(itertools.islice(lines, end)), encoding="utf-8")
        group(path, folder / "groups.csv", update=True)
