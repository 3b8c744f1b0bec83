"""Retrieval of candidate pairs: exact passes over all pairs of pages, in which each page keeps its best partners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Int64Array
from linker.base.progress import bar
from linker.crosslingual.scoring.candidates import Hashes, PagePairScorer, nearest
from linker.crosslingual.scoring.checkpoint import Checkpoint
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.products import Restrictable
from linker.crosslingual.scoring.stages import Arrays, Stages


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
    keys: tuple[Sequence[str], Sequence[str]],
    stages: Stages,
    stage: str,
) -> Graph:
    """Return the graph of the pairs that the passes keep by the available `scores`.

    Only the source pages `rows` (int64 [n']) and the target pages `columns` (int64 [m']) take part. `keys`: strings
    of all pages, whose hashes break ties. The graph is stored as the stage `stage`, from which a run can resume.
    """
    shape = (len(keys[0]), len(keys[1]))
    sides = [keys[0][i] for i in rows], [keys[1][j] for j in columns]

    def make() -> Arrays:
        graph = Graph.of(rows[:0], columns[:0], shape)
        for step in passes if len(rows) and len(columns) else ():
            if step.name in scores:
                checkpoint = stages.checkpoint(f"{stage}-{step.name}")
                i, j = _pass(scores[step.name].restrict(rows, columns), step, sides, checkpoint)
                graph |= Graph.of(rows[i], columns[j], shape)
        return {"rows": graph.rows, "columns": graph.columns}

    pairs = stages.remember(stage, make, in_memory=True)
    return Graph(pairs["rows"], pairs["columns"], shape)


def _pass(
    score: PagePairScorer,
    step: Pass,
    keys: tuple[Sequence[str], Sequence[str]],
    checkpoint: Checkpoint | None,
) -> tuple[Int64Array, Int64Array]:
    """Return the pairs of pages that one pass keeps: int64 sources and targets, in no particular order."""
    with bar(score.shape[0], f"retrieving by {step.name}", "pages") as meter:
        found = nearest(
            score, *keys, depth=step.forward, k=step.backward, checkpoint=checkpoint, advance=meter.update
        )
    i, j, _ = found.candidates.pairs()
    back, at = np.nonzero(found.holders >= 0)
    return np.concatenate((i, found.holders[back, at])), np.concatenate((j, at))


def fill(graph: Graph, rows: Int64Array, columns: Int64Array, size: int, source: Hashes) -> Graph:
    """Return the graph with at least `size` pairs with `columns` for each source page in `rows` (int64 [n']).

    Pages that share nothing with any page get arbitrary ones of `columns` (int64 [at least `size`]), chosen by the
    hashes of all source pages (uint64 [n]).
    """
    inside = np.isin(graph.columns, columns)
    few = rows[np.bincount(graph.rows[inside], minlength=graph.shape[0])[rows] < size]
    first = (source[few] % np.uint64(len(columns))).astype(np.int64)
    added = columns[(first[:, None] + np.arange(size)) % len(columns)]
    return graph | Graph.of(np.repeat(few, size), added.ravel(), graph.shape)
