"""Candidate lists for the ranker: retrieved pairs, their scores, and features of the best of them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from indexes.dtypes import AnyArray, BoolArray, Int64Array
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.features import candidate_lists, with_pairs
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.scoring.candidates import hashes
from linker.crosslingual.scoring.graph import Graph
from linker.crosslingual.scoring.retrieval import fill, retrieve
from linker.crosslingual.scoring.stages import Arrays, digest
from linker.scoring.ranking.lists import CandidateLists


def describe(
    evidence: AllEvidence,
    learned: Learned,
    rows: Int64Array,
    competitors: Int64Array,
    taken: Sequence[Int64Array],
    size: int,
    advance: Callable[[int], object] = lambda count: None,
    retrieved: Graph | None = None,
) -> list[CandidateLists]:
    """Return `size` candidates of each source page in `rows`, with all features, for each of `taken`.

    `competitors`: other source rows that compete for the same targets; `taken`: arrays of targets to exclude, each with
    all the previous ones. All are int64. `retrieved`: pairs that learned scores retrieved for some of these pages;
    the pairs of the other pages are retrieved here.
    """
    name = digest(learned.links, rows, competitors, *taken)
    free = [free_targets(evidence, part) for part in taken]

    def make() -> Arrays:
        arrays: dict[str, AnyArray] = {}
        graph = _graph(evidence, learned, (rows, competitors), free, size, retrieved)
        for i, lists in enumerate(_describe(evidence, learned, rows, graph, free, size)):
            arrays |= {f"targets{i}": lists.targets, f"features{i}": lists.features}
            arrays["names"] = np.array(lists.names)
        return arrays

    arrays = evidence.stages.remember(f"lists-{name}", make)
    advance(len(rows))
    names = tuple(arrays["names"].tolist())
    return [
        CandidateLists(rows, arrays[f"targets{i}"], arrays[f"features{i}"], names, evidence.exclusive)
        for i in range(len(taken))
    ]


def _graph(
    evidence: AllEvidence,
    learned: Learned,
    pages: tuple[Int64Array, Int64Array],
    free: Sequence[Int64Array],
    size: int,
    retrieved: Graph | None,
) -> Graph:
    """Return the candidate pairs of the source rows `pages[0]`, and pairs of the other `pages` with their targets.

    Every row of `pages[0]` gets at least `size` pairs whose target is in `free[-1]`.
    """
    rows, everyone = pages[0], np.concatenate(pages)
    todo = np.sort(everyone)
    if retrieved is not None:
        todo = todo[~_flags(retrieved.rows, retrieved.shape[0])[todo]]
    graph = retrieve_taught(evidence, learned, todo, free[0]) | evidence.shared
    graph = graph if retrieved is None else graph | retrieved
    graph = graph.only(_flags(everyone, graph.shape[0]), _flags(free[0], graph.shape[1]))
    graph = fill(graph, everyone, free[-1], size, hashes(evidence.source.keys))
    return graph.around(_flags(rows, graph.shape[0]))


def _describe(
    evidence: AllEvidence,
    learned: Learned,
    rows: Int64Array,
    graph: Graph,
    free: Sequence[Int64Array],
    size: int,
) -> Iterator[CandidateLists]:
    values = {name: score.pairs(graph) for name, score in (evidence.fixed | learned.scores).items()}
    # Equal sums are ranked by a hash of the content, so that the input order has no effect.
    order = np.argsort(np.argsort(hashes(evidence.target.keys), kind="stable"))
    for part in free:
        keep = _flags(part, graph.shape[1])[graph.columns]
        inside, kept = graph, values
        if not keep.all():
            inside = Graph(graph.rows[keep], graph.columns[keep], graph.shape)
            kept = {name: value[keep] for name, value in values.items()}
        lists = candidate_lists(kept, inside, rows, choosing=evidence.choosing, order=order, size=size)
        yield with_pairs(lists, learned.pairs.features(rows, lists.targets), learned.pairs.names)


def retrieve_taught(evidence: AllEvidence, learned: Learned, rows: Int64Array, free: Int64Array) -> Graph:
    """Return the pairs of the source pages `rows` and the target pages `free` that learned scores retrieve."""
    keys = evidence.source.keys, evidence.target.keys
    stage = f"taught-{digest(learned.links, rows, free)}"
    return retrieve(learned.scores, evidence.passes, rows, free, keys, evidence.stages, stage)


def free_targets(evidence: AllEvidence, taken: Int64Array) -> Int64Array:
    """Return the targets that are not `taken`, in the order of a hash of their content."""
    free = np.setdiff1d(np.arange(len(evidence.target)), taken)
    return free[np.argsort(hashes([evidence.target.keys[i] for i in free]), kind="stable")]


def _flags(rows: Int64Array, n: int) -> BoolArray:
    flags = np.zeros(n, np.bool_)
    flags[rows] = True
    return flags
