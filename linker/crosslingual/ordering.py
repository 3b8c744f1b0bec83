"""A task with its pages in order of content, so that neither their ids nor the input order matters.

Sums of floating-point numbers depend on their order, and so do folds, random permutations and ties. A method
therefore sees every task in a fixed order. Only pages with identical texts and links, which no method can tell apart,
stay in the order of input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.task import LinkingResult, Task


@dataclass(frozen=True, eq=False)
class OrderedTask:
    """A `task` in the order of content; `source` int64 [n] and `target` int64 [m]: its pages' rows in input order."""

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


def in_content_order(task: Task) -> OrderedTask:
    """Return the task with its pages, and then its links, in the order of the pages' content.

    Pages with identical texts come in the order of the pages that they are linked to, and only then in input order:
    it matters which of them is linked to which page.
    """
    links, through = task.train, task.pivot_links
    pivot = task.pivot or task.source
    known = [(links[:, 1], task.source, links[:, 0]), (through[:, 1], pivot, through[:, 0])]
    source, source_rows = _ordered(task.source, [(links[:, 0], task.target, links[:, 1])])
    target, target_rows = _ordered(task.target, known)
    ordered = replace(task, source=source, target=target, train=_links(links, source_rows, target_rows))
    if task.pivot is not None:
        pages, rows = _ordered(pivot, [(through[:, 0], task.target, through[:, 1])])
        ordered = replace(ordered, pivot=pages, pivot_links=_links(through, rows, target_rows))
    return OrderedTask(ordered, source_rows, target_rows)


def _ordered(pages: Pages, links: Sequence[tuple[Int64Array, Pages, Int64Array]]) -> tuple[Pages, Int64Array]:
    """Return the pages in the order of their content, and their rows in `pages`.

    Each item of `links` holds rows of `pages`, other pages, and for each row the linked row of the other pages;
    identical pages are ordered by the pages that they are linked to.
    """
    if len(set(pages.digests)) == len(pages):
        return pages.by_content
    partners: dict[int, list[str]] = {}
    for rows, others, their_rows in links:
        for row, other in zip(rows.tolist(), their_rows.tolist(), strict=True):
            partners.setdefault(row, []).append(others.digests[other])
    keys = [
        (digest, row not in partners, sorted(partners.get(row, ())))
        for row, digest in enumerate(pages.digests)
    ]
    order = sorted(range(len(pages)), key=keys.__getitem__)
    return pages.at(order), np.array(order, np.int64)


def _links(links: Int64Array, source: Int64Array, target: Int64Array) -> Int64Array:
    """Return `links` [l, 2] with the pages' new rows, sorted; `source` and `target` hold the old row of each page."""
    moved = np.stack([np.argsort(source)[links[:, 0]], np.argsort(target)[links[:, 1]]], axis=1)
    return moved[np.lexsort((moved[:, 1], moved[:, 0]))]
