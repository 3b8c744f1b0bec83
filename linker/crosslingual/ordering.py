"""A task with its pages in the order of their content, so that neither their ids nor the order of input matter.

Sums of floating-point numbers depend on their order, and so do folds, random permutations and ties. A method therefore
sees every task in one order. Only pages with identical texts, which no method can tell apart, are ordered by their ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.task import LinkingResult, Task


@dataclass(frozen=True, eq=False)
class Ordered:
    """A `task` in the order of content; `source` and `target` are the rows of its pages as given: int64 [n], [m]."""

    task: Task
    source: Int64Array
    target: Int64Array

    def as_given(self, result: LinkingResult) -> LinkingResult:
        """Return the result with rows, targets, explanations and lists of pages in the order of input."""
        targets = np.full_like(result.candidates.targets, -1)
        scores = np.full_like(result.candidates.scores, -np.inf)
        valid = result.candidates.targets >= 0
        targets[self.source] = np.where(valid, self.target[result.candidates.targets], -1)
        scores[self.source] = result.candidates.scores
        place = dict(zip(self.task.source.ids, self.source.tolist(), strict=True))
        metadata = dict(result.metadata)
        if "no_link" in metadata:
            metadata["no_link"] = sorted(metadata["no_link"], key=place.__getitem__)
        explanations = result.explanations
        if explanations is not None:
            explanations = sorted(explanations, key=lambda record: place[record["id"]])
        return replace(
            result, candidates=Candidates(targets, scores), metadata=metadata, explanations=explanations
        )


def in_content_order(task: Task) -> Ordered:
    """Return the task with its pages, and then its links, in the order of the pages' content."""
    source, source_rows = task.source.by_content
    target, target_rows = task.target.by_content
    train = _links(task.train, source_rows, target_rows)
    if task.pivot is None:
        return Ordered(replace(task, source=source, target=target, train=train), source_rows, target_rows)
    pivot, pivot_rows = task.pivot.by_content
    through = _links(task.pivot_links, pivot_rows, target_rows)
    ordered = replace(task, source=source, target=target, train=train, pivot=pivot, pivot_links=through)
    return Ordered(ordered, source_rows, target_rows)


def _links(links: Int64Array, source: Int64Array, target: Int64Array) -> Int64Array:
    """Return `links` [l, 2] between pages that were moved from the rows `source` and `target`, sorted."""
    moved = np.stack([np.argsort(source)[links[:, 0]], np.argsort(target)[links[:, 1]]], axis=1)
    return moved[np.lexsort((moved[:, 1], moved[:, 0]))]
