"""Retrieval of candidate pairs: exact passes over all pairs of pages, of which each page keeps its best partners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.scoring.candidates import Hashes, nearest
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.scores import Restrictable
from linker.progress import bar


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass by the score `name`: each source page keeps `forward` targets, each target page `backward` sources."""

    name: str
    forward: int
    backward: int


def retrieve(
    scores: Mapping[str, Restrictable],
    passes: Sequence[Pass],
    rows: Int64Array,
    columns: Int64Array,
    ids: tuple[Sequence[str], Sequence[str]],
) -> Graph:
    """Return the graph of the pairs that the passes keep by those of `scores` that there are.

    Only the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m']) take part. `ids`: of all
    pages; their hashes break ties.
    """
    graph = Graph.of(rows[:0], columns[:0], (len(ids[0]), len(ids[1])))
    if not len(rows) or not len(columns):
        return graph
    sources, targets = [ids[0][i] for i in rows], [ids[1][j] for j in columns]
    for step in passes:
        if step.name in scores:
            score = scores[step.name].restrict(rows, columns)
            with bar(len(rows), f"retrieving by {step.name}", "pages") as meter:
                found = nearest(
                    score, sources, targets, depth=step.forward, k=step.backward, advance=meter.update
                )
            i, j, _ = found.candidates.pairs()
            back, at = np.nonzero(found.holders >= 0)
            sides = (np.concatenate((i, found.holders[back, at])), np.concatenate((j, at)))
            graph |= Graph.of(rows[sides[0]], columns[sides[1]], graph.shape)
    return graph


def filled(graph: Graph, rows: Int64Array, columns: Int64Array, size: int, source: Hashes) -> Graph:
    """Return the graph with at least `size` pairs for each source page in `rows` (int64 [n']).

    Pages that share nothing with any page get arbitrary ones of `columns` (int64 [at least `size`]), chosen by the
    hashes of all source pages (uint64 [n]).
    """
    few = rows[np.diff(graph.begin)[rows] < size]
    first = (source[few] % np.uint64(len(columns))).astype(np.int64)
    added = columns[(first[:, None] + np.arange(size)) % len(columns)]
    return graph | Graph.of(np.repeat(few, size), added.ravel(), graph.shape)
