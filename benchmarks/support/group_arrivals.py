"""Documents that arrive in batches: what their groups cost, and how far they differ from grouping all of them."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.group_data import Grouped, lead, measured
from indexes.dtypes import Int64Array
from linker.crosslingual.regrouping import grouped
from linker.crosslingual.sides import Side

BATCHES, COMPARED = 20, 4  # batches of a corpus; every how many of them all documents are also grouped


def drift(corpus: Grouped) -> dict[str, Any]:
    """Return how the groups of documents arriving in random order differ from those of all documents.

    `mean` and `least`: B-cubed F1 between both, every few batches. `queries`: per document, over all batches.
    """
    order = np.random.default_rng(0).permutation(len(corpus.documents))
    f1, queries, arriving, full = list[float](), 0, order[:0], order[:0]
    with tempfile.TemporaryDirectory() as folder:
        for number, end in enumerate(np.linspace(0, len(order), BATCHES + 1).astype(int)[1:].tolist(), start=1):
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
    side = Side(Path("corpus"), {d.id: d for d in corpus.documents}, "en")
    groups, _ = grouped(side, folder=folder)
    return np.array([member.group for member in groups.members]), int(groups.metadata["queries"])
